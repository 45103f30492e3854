#pragma once

// Included where clusters are compiled.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/memories/bucket_read-inl.hpp>
#include <phiattn/memories/cluster_read.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

template <class S>
void ClusterRead<S>::run(Rows<const S> x, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const Index n = x.rows, all = clusters_ + tokens_;
  const Products products = multiply_summaries(frame, x);
  Row row = first_row(frame, products);

  // Which rows read a cluster, and how many of its tokens.
  auto* const readers = frame.numbers<BucketReader>(clusters_ * n);
  auto* const counts = frame.numbers<Index>(clusters_);
  auto* const sees_any = frame.numbers<bool>(n);
  std::fill_n(counts, clusters_, Index{0});
  const Rows<S> weights = frame.rows<S>(n, all);
  out.set_nothing();
  bool any_rest = false;
  for (Index t = 0; t < n; ++t) {
    if (t % heads_ == 0 && t / heads_ < tokens_) see_token(t / heads_, products, row);
    S* const estimates = weights.row(t);
    estimate(t, products, row, estimates);
    choose((std::min)(options_.top, row.existing), estimates, row);
    sees_any[t] = row.existing > 0;
    for (Index p = 0; p < row.chosen_count; ++p) {
      const Index c = row.chosen[p];
      readers[c * n + counts[c]++] = {t, buckets_[static_cast<std::size_t>(c)].size() - row.coming[c]};
    }
    any_rest |= sum_rest(t, row, weights.row(t), out);
  }
  if (any_rest) {
    multiply<S>(weights.left(clusters_), before_.value_means, out.sums);
    if (tokens_ > 0) {
      multiply_add<S>({weights.data + clusters_, n, tokens_, weights.stride}, after_.value_means, out.sums,
                      0);
    }
  }
  for (Index c = 0; c < clusters_; ++c) {
    read_bucket<S>(x, buckets_[static_cast<std::size_t>(c)], readers + c * n, counts[c], out);
  }
  for (Index t = 0; t < n; ++t) {
    if (sees_any[t] && out.normaliser[t] == 0) out.set_out_of_range(t);
  }
}

template <class S>
typename ClusterRead<S>::Row ClusterRead<S>::first_row(Workspace::Frame& frame,
                                                       const Products& products) const {
  Row row{frame.numbers<S>(clusters_),
          frame.numbers<S>(clusters_),
          frame.numbers<Index>(clusters_),
          frame.numbers<Index>(clusters_),
          0,
          frame.numbers<Index>(clusters_),
          frame.numbers<Index>(clusters_ + 1),
          0,
          0,
          frame.numbers<S>(padded<S>(clusters_))};
  std::copy_n(products.log_masses, clusters_, row.log_masses);
  std::copy_n(products.frozen, clusters_, row.frozen);
  std::fill_n(row.coming, clusters_, Index{0});
  for (Index j = 0; j < tokens_; ++j) ++row.coming[of_[j]];
  for (Index c = 0; c < clusters_; ++c) {
    row.current[c] = c;
    row.existing += before_.exists(c);
  }
  return row;
}

template <class S>
void ClusterRead<S>::see_token(Index token, const Products& products, Row& row) const {
  const Index c = of_[token], summary = clusters_ + token;
  if (row.current[c] == c) row.changed[row.changed_count++] = c;
  row.current[c] = summary;
  row.existing += row.log_masses[c] == -std::numeric_limits<S>::infinity();
  row.log_masses[c] = products.log_masses[summary];
  row.frozen[c] = products.frozen[summary];
  --row.coming[c];
}

template <class S>
typename ClusterRead<S>::Products ClusterRead<S>::multiply_summaries(Workspace::Frame& frame,
                                                                     Rows<const S> x) const {
  const Index n = x.rows, all = clusters_ + tokens_;
  const Products products{frame.rows<S>(n, all), frame.rows<S>(n, all), frame.numbers<S>(n),
                          frame.numbers<S>(all), frame.numbers<S>(all)};
  Workspace::Frame own;
  const Rows<S> squares = own.rows<S>(n, x.cols);
  for (Index t = 0; t < n; ++t) {
    const Eigen::Map<const RowVector<S>> row(x.row(t), x.cols);
    products.lengths[t] = length_of(row);
    squares.eigen().row(t) = (row / products.lengths[t]).cwiseAbs2();
  }
  const auto take = [&](const ClusterSummaries<S>& summaries, Index first, Index count, Index diagonal) {
    const auto part = [&](const Rows<S>& rows) { return Rows<S>(rows.data + first, n, count, rows.stride); };
    multiply_transposed<S>(x, summaries.means.top(count), part(products.means), diagonal);
    multiply_transposed<S>(squares, summaries.variances.top(count), part(products.spreads), diagonal);
    std::copy_n(summaries.log_masses, count, products.log_masses + first);
    for (Index c = 0; c < count; ++c) {
      products.frozen[first + c] = static_cast<S>(summaries.counts[c].frozen(options_.freezing));
    }
  };
  take(before_, 0, clusters_, kNoDiagonal);
  if (tokens_ > 0) take(after_, clusters_, tokens_, 0);
  return products;
}

/// Estimates the log-normaliser of every cluster that row t sees, -inf of the others.
template <class S>
void ClusterRead<S>::estimate(Index t, const Products& products, const Row& row, S* estimates) const {
  S *const means = products.means.row(t), *const spreads = products.spreads.row(t);
  for (Index i = 0; i < row.changed_count; ++i) {
    const Index c = row.changed[i];
    means[c] = means[row.current[c]];
    spreads[c] = spreads[row.current[c]];
  }
  const S length = products.lengths[t];
  const S *const log_masses = row.log_masses, *const all_frozen = row.frozen;
  in_packets<S>(clusters_, [&]<class P>(Index c) PHIATTN_INLINE {
    const P log_mass = ploadu<P>(log_masses + c), frozen = ploadu<P>(all_frozen + c);
    const P infinity = pset1<P>(std::numeric_limits<S>::infinity());
    const P nothing = pset1<P>(-std::numeric_limits<S>::infinity());
    // Eigen's root of infinity is NaN. The first argument prevails where one is NaN.
    const P spread =
        pmin(P(pmax(ploadu<P>(spreads + c), pset1<P>(S(0)))), pset1<P>((std::numeric_limits<S>::max)()));
    const P sigma = pmul(pset1<P>(length), psqrt(spread));
    // Beyond what is frozen the energy follows its tangent.
    const P below = pselect(pcmp_lt(frozen, sigma), frozen, sigma);
    const P energy = pmul(below, P(psub(sigma, P(pmul(below, pset1<P>(S(0.5)))))));
    const P estimate = padd(P(padd(log_mass, ploadu<P>(means + c))), energy);
    // What is not finite is read exactly.
    const P ranked = pselect(pcmp_eq(estimate, estimate), estimate, infinity);
    pstoreu(estimates + c, P(pselect(pcmp_eq(log_mass, nothing), nothing, ranked)));
  });
}

/// The top-th largest number among n, whole packets, or a smaller one if some of those are equal.
template <class S>
S lower_bound_of_largest(const S* x, Index n, Index top) {
  using P = Packet<S>;
  P best = pset1<P>(-std::numeric_limits<S>::infinity());
  for (Index c = 0; c < n; c += kPacket<S>) best = pmax(best, ploadu<P>(x + c));
  S least = predux_max(best);
  for (Index rank = 1; rank < top; ++rank) {
    const P above = pset1<P>(least), nothing = pset1<P>(-std::numeric_limits<S>::infinity());
    best = nothing;
    for (Index c = 0; c < n; c += kPacket<S>) {
      const P value = ploadu<P>(x + c);
      best = pmax(best, P(pselect(pcmp_lt(value, above), value, nothing)));
    }
    least = predux_max(best);
  }
  return least;
}

/// The `top` clusters of the largest estimates, of equals the first.
template <class S>
void ClusterRead<S>::choose(Index top, const S* estimates, Row& row) const {
  constexpr Index kFew = 16;  // clusters that are found faster by as many passes than by sorting
  constexpr S kNone = -std::numeric_limits<S>::infinity();
  row.chosen_count = 0;
  if (top == 0) return;
  if (top < row.existing && top <= kFew) {
    const Index whole = padded<S>(clusters_);
    std::copy_n(estimates, clusters_, row.ranking);
    std::fill(row.ranking + clusters_, row.ranking + whole, kNone);
    const S least = lower_bound_of_largest(row.ranking, whole, top);
    for (Index c = 0; c < clusters_; ++c) {
      row.chosen[row.chosen_count] = c;
      row.chosen_count += estimates[c] >= least;
    }
    if (row.chosen_count == top && least > kNone) return;
  }
  const auto exists = [&](Index c) { return row.log_masses[c] != kNone; };
  Index n = 0;
  for (Index c = 0; c < clusters_; ++c) {
    if (exists(c)) row.chosen[n++] = c;
  }
  const auto better = [estimates](Index a, Index b) {
    return estimates[a] != estimates[b] ? estimates[a] > estimates[b] : a < b;
  };
  if (top < n) std::nth_element(row.chosen, row.chosen + top, row.chosen + n, better);
  row.chosen_count = top;
}

/// Estimates become weights of the summaries of the clusters that row t does not read; whether there are any.
template <class S>
bool ClusterRead<S>::sum_rest(Index t, const Row& row, S* weights, const RowSums<S>& out) const {
  std::fill_n(weights + clusters_, tokens_, S(0));
  if (row.chosen_count == row.existing) {
    std::fill_n(weights, clusters_, S(0));
    return false;
  }
  for (Index p = 0; p < row.chosen_count; ++p) weights[row.chosen[p]] = -std::numeric_limits<S>::infinity();
  Eigen::Map<RowVector<S>> all(weights, clusters_);
  const S highest = (std::max)(kNothing<S>, all.maxCoeff());
  exp_shifted(all.head(clusters_), highest);
  out.normaliser[t] = all.sum();
  out.log_scale[t] = highest;
  for (Index i = 0; i < row.changed_count; ++i) {
    const Index c = row.changed[i];
    weights[row.current[c]] = weights[c];
    weights[c] = 0;
  }
  return true;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
