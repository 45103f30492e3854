#pragma once

// Included where closures are compiled.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/closure_read.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// y_j <- w_j (1 + slope (y_j - mean)) factor
template <class S>
void weigh_deviations(S* y, const S* w, Index n, S mean, S slope, S factor) {
  in_packets<S>(n, [&]<class P>(Index j) PHIATTN_INLINE {
    const P deviation = psub(ploadu<P>(y + j), pset1<P>(mean));
    const P weight = pmadd(pset1<P>(slope), deviation, pset1<P>(S(1)));
    pstoreu(y + j, P(pmul(pmul(ploadu<P>(w + j), weight), pset1<P>(factor))));
  });
}

/// out <- factor x
template <class S>
void scale_row(const S* x, S factor, S* out, Index n) {
  in_packets<S>(n, [&]<class P>(Index j)
                       PHIATTN_INLINE { pstoreu(out + j, P(pmul(ploadu<P>(x + j), pset1<P>(factor)))); });
}

template <class S>
AttentionStatus ClosureRead<S>::run(Rows<const S> x, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const Tables tables = multiply_all(frame, x);
  const auto running = RunningClosures<S>::of(frame, closures_);
  const Rows<S> squares = frame.rows<S>(1, x.cols);
  for (Index t = 0; t < x.rows; ++t) {
    if (const Index step = t / heads_; t % heads_ == 0 && step < tokens()) {
      const Index g = block_->closures[step];
      running.add(g, *block_, block_->slots[step], closure(g).options);
    }
    see_row(t, tables, running, squares);
    weigh_row(t, tables, running, out);
  }
  if (clamps()) return add_up_clamped(tables, out);
  add_up(tables, out.sums);
  return {};
}

template <class S>
typename ClosureRead<S>::Tables ClosureRead<S>::multiply_all(Workspace::Frame& frame, Rows<const S> x) const {
  const Index n = x.rows, m = tokens();
  const Tables tables{frame.rows<S>(n, x.cols), frame.numbers<S>(n),          frame.rows<S>(n, m),
                      frame.rows<S>(n, count_), frame.rows<S>(n, 2 * count_), frame.rows<S>(n, count_),
                      frame.rows<S>(n, count_)};
  for (Index t = 0; t < n; ++t) {
    const Eigen::Map<const RowVector<S>> row(x.row(t), x.cols);
    tables.lengths[t] = length_of(row);
    tables.units.eigen().row(t) = row / tables.lengths[t];
  }
  if (m > 0) multiply_transposed<S>(tables.units, block_->keys, tables.scores, diagonal());
  if (!is_full()) return tables;
  Workspace::Frame own;
  const Rows<S> products = own.rows<S>(n, x.cols);
  for (Index g = 0; g < count_; ++g) {
    multiply<S>(tables.units, closure(g).second, products);
    for (Index t = 0; t < n; ++t) {
      tables.spreads(t, g) = tables.units.eigen().row(t).dot(products.eigen().row(t));
    }
  }
  return tables;
}

/// Products of the query with the means and second moments that its row sees.
template <class S>
void ClosureRead<S>::see_row(Index t, const Tables& tables, const RunningClosures<S>& running,
                             Rows<S> squares) const {
  const Rows<S> unit = tables.units.middle(t, 1);
  multiply_transposed<S>(unit, running.means, tables.centres.middle(t, 1));
  if (is_full()) return;
  squares.eigen() = unit.eigen().cwiseAbs2();
  multiply_transposed<S>(squares, running.seconds, tables.spreads.middle(t, 1));
}

/// Z sigma^2 of a unit.
template <class S>
S ClosureRead<S>::variance(Index t, Index g, const Tables& tables, const RunningClosures<S>& running) const {
  S variance = tables.spreads(t, g);
  if (!is_full() || tokens() == 0) return variance;
  const S mean = tables.centres(t, count_ + g);
  const S* const scores = tables.scores.row(t) + block_->begin[g];
  const S* const weights = block_->weights + block_->begin[g];
  const Index seen = running.seen[g];
  variance += closure(g).normaliser * mean * mean;
  for (Index j = 0; j < seen; ++j) variance += weights[j] * (scores[j] - mean) * (scores[j] - mean);
  return variance;
}

/// The log-normaliser of closure g in row t, and tau. NaN if squares leave the range: they say nothing.
template <class S>
void ClosureRead<S>::estimate(Index t, Index g, const Tables& tables,
                              const RunningClosures<S>& running) const {
  const S length = tables.lengths[t], frozen = running.frozen[g];
  const S spread = variance(t, g, tables, running) / running.normalisers[g];
  const S sigma = length * std::sqrt((std::max)(spread, S(0)));
  const S tau = sigma > frozen ? frozen / sigma : S(1);
  const S energy = sigma > frozen ? frozen * (sigma - frozen / 2) : sigma * sigma / 2;
  const S centre = length * (tables.centres(t, g) + tables.centres(t, count_ + g));
  tables.slopes(t, g) = tau * length;
  tables.weights(t, g) = sigma == std::numeric_limits<S>::infinity()
                             ? std::numeric_limits<S>::quiet_NaN()
                             : closure(g).log_scale + running.log_normalisers[g] + centre + energy;
}

/// What each closure, and each token that it sees, weighs in row t.
template <class S>
void ClosureRead<S>::weigh_row(Index t, const Tables& tables, const RunningClosures<S>& running,
                               const RowSums<S>& out) const {
  constexpr S kInfinity = std::numeric_limits<S>::infinity();
  S* const weights = tables.weights.row(t);
  const S* const normalisers = running.normalisers;
  S top = -kInfinity;
  bool any = false;
  for (Index g = 0; g < count_; ++g) {
    weights[g] = -kInfinity;
    if (normalisers[g] == 0) continue;
    any = true;
    estimate(t, g, tables, running);
    top = (std::max)(top, weights[g]);
  }
  if (std::abs(top) < kInfinity) {
    exp_shifted(Eigen::Map<RowVector<S>>(weights, count_), top);
  } else {
    for (Index g = 0; g < count_; ++g) {
      const bool equals = weights[g] == top && normalisers[g] != 0;
      weights[g] = equals ? S(1) : normalisers[g] == 0 ? S(0) : flushed_exp(weights[g] - top);
    }
  }
  out.log_scale[t] = any ? top : kNothing<S>;
  out.normaliser[t] = 0;
  for (Index g = 0; g < count_; ++g) {
    out.normaliser[t] += weights[g];
    const S weight = clamps() ? S(1) : weights[g];
    const S factor = normalisers[g] == 0 ? S(0) : weight / normalisers[g];
    if (tokens() > 0) weigh_tokens(t, g, factor, tables, running);
    tables.slopes(t, g) = factor == 0 ? S(0) : tables.slopes(t, g) * factor;
  }
}

template <class S>
void ClosureRead<S>::weigh_tokens(Index t, Index g, S factor, const Tables& tables,
                                  const RunningClosures<S>& running) const {
  const Index begin = block_->begin[g], seen = running.seen[g];
  S* const scores = tables.scores.row(t) + begin;
  if (seen > 0) {
    weigh_deviations(scores, block_->weights + begin, seen, tables.centres(t, count_ + g),
                     tables.slopes(t, g), factor);
  }
  std::fill(scores + seen, scores + block_->count(g), S(0));
}

/// sums <- sums + factors K_0 x
template <class S>
void ClosureRead<S>::add_slopes(Index g, const Tables& tables, Rows<S> sums) const {
  if (closure(g).empty()) return;
  Workspace::Frame frame;
  const Rows<S> scaled = frame.rows<S>(tables.units.rows, tables.units.cols);
  for (Index t = 0; t < scaled.rows; ++t) {
    scale_row(tables.units.row(t), tables.slopes(t, g), scaled.row(t), scaled.cols);
  }
  multiply_add<S>(scaled, closure(g).cross, sums);
}

template <class S>
void ClosureRead<S>::add_up(const Tables& tables, Rows<S> sums) const {
  Workspace::Frame frame;
  const Rows<S> value_means = frame.rows<S>(count_, sums.cols);
  for (Index g = 0; g < count_; ++g) std::copy_n(closure(g).value_mean.data(), sums.cols, value_means.row(g));
  multiply<S>(tables.weights, value_means, sums);
  for (Index g = 0; g < count_; ++g) add_slopes(g, tables, sums);
  if (tokens() > 0) multiply_add<S>(tables.scores, block_->values, sums, diagonal());
}

/// The same with what each closure says held inside the hull of the values that the row sees of it.
template <class S>
AttentionStatus ClosureRead<S>::add_up_clamped(const Tables& tables, const RowSums<S>& out) const {
  AttentionStatus status;
  out.sums.eigen().setZero();
  for (Index g = 0; g < count_; ++g) {
    Workspace::Frame frame;
    const Index n = out.rows();
    const auto part = RowSums<S>::of(frame, n, out.sums.cols);
    for (Index t = 0; t < n; ++t) part.row(t) = closure(g).value_mean;
    add_slopes(g, tables, part.sums);
    if (tokens() > 0 && block_->count(g) > 0) {
      const Index begin = block_->begin[g], m = block_->count(g);
      multiply_add<S>({tables.scores.data + begin, n, m, tables.scores.stride},
                      block_->values.middle(begin, m), part.sums);
    }
    ValueHull<S> hull = closure(g).hull;
    Index seen = 0;
    for (Index t = 0; t < n; ++t) {
      for (; tokens() > 0 && seen < block_->count(g) && block_->order[block_->begin[g] + seen] <= t / heads_;
           ++seen) {
        hull.add(tokens_->value(block_->order[block_->begin[g] + seen]));
      }
      if (closure(g).empty() && seen == 0) continue;
      if (hull.clamp(part.row(t))) ++status.clamped_rows;
      out.row(t) += tables.weights(t, g) * part.row(t);
    }
  }
  return status;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
