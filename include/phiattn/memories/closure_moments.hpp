#pragma once

// The state of one Gaussian closure.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/state_scale.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/memories/closure_options.hpp>
#include <phiattn/memories/closure_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Weighted moments of keys y and values v, with weights w_j = exp(a_j) under one log-scale c = max_j a_j:
///
///     Z = sum w,  mu = sum w y / Z,  nu = sum w v / Z,  sum w (y - mu)(y - mu)',  sum w (y - mu)(v - nu)'
///
/// and what they say of exp(x . y) for queries x (see GaussianClosure). Moments are kept about means, never as raw
/// sums, and every term of a spread is positive: nothing cancels (Chan, Golub & LeVeque 1979 give the rule of union).
/// Z >= 1 after a block, and >= e^-40 for every row inside.
template <class S>
class ClosureMoments {
 public:
  ClosureMoments(Index d, Index dv, const ClosureOptions& options)
      : options_(options),
        mean_(RowVector<S>::Zero(d)),
        value_mean_(RowVector<S>::Zero(dv)),
        second_(Matrix<S>::Zero(is_full() ? d : 1, d)),
        cross_(Matrix<S>::Zero(d, dv)),
        hull_(options.clamp ? dv : 0) {}

  const ClosureOptions& options() const { return options_; }
  bool empty() const { return normaliser_ == 0; }

  /// Makes room for all that n queries and m tokens take at a time, so that nothing throws once anything has changed.
  void reserve(Workspace::Frame& frame, Index n, Index m) const {
    const Index d = mean_.size(), dv = value_mean_.size();
    frame.reserve<S>(m * (1 + d + dv) + n * (m + 2 * d + 1) + 2 * d + d + dv + m * d, 16);
  }

  /// Queries x (n, d) see all tokens so far.
  AttentionStatus read(Rows<const S> x, const RowSums<S>& out) const {
    if (empty()) {
      out.set_nothing();
      return {};
    }
    return read_rows(x, VisibleTokens(), nullptr, {}, out);
  }

  void append(const ClosureTokens<S>& tokens) {
    if (tokens.size() == 0) return;
    Workspace::Frame frame;
    reserve(frame, 0, tokens.size());
    absorb(tokens, take_keys(frame, tokens));
  }

  /// Row t sees all tokens so far and the first visible(t) of the block; the last one sees the whole block. Taken as
  /// one block if that is safe, else as two halves in order. A non-finite token is unsafe: 0 * inf in the zeroed
  /// triangle is NaN.
  AttentionStatus advance(Rows<const S> x, const ClosureTokens<S>& tokens, const VisibleTokens& visible,
                          const RowSums<S>& out) {
    if (tokens.size() == 0) return read(x, out);
    const Index n = x.rows;
    Workspace::Frame all;
    reserve(all, n, tokens.size());
    if (n == visible.heads() || admits(tokens, visible, n)) {
      Workspace::Frame frame;
      const Deviations deviations = take_keys(frame, tokens);
      const AttentionStatus status = read_rows(x, visible, &tokens, deviations, out);
      absorb(tokens, deviations);
      return status;
    }
    const Index steps = n / visible.heads() / 2, half = steps * visible.heads();
    const Index early = visible(half - 1);
    AttentionStatus status = advance(x.top(half), tokens.middle(0, early), visible, out.middle(0, half));
    status.add(advance(x.middle(half, n - half), tokens.middle(early, tokens.size() - early),
                       visible.after(steps, early), out.middle(half, n - half)),
               half);
    return status;
  }

  /// Adds the tokens of `other`, by the union of their moments.
  void merge(const ClosureMoments& other) {
    count_.merge(other.count_);
    hull_.merge(other.hull_);
    if (other.empty()) return;
    if (empty()) {
      mean_ = other.mean_;
      value_mean_ = other.value_mean_;
    }
    raise((std::max)(log_scale_, other.log_scale_));
    const S weight = flushed_exp(other.log_scale_ - log_scale_);
    const S sum = normaliser_ + weight * other.normaliser_;
    const S share = weight * other.normaliser_ / sum;
    const RowVector<S> shift = other.mean_ - mean_;
    const RowVector<S> value_shift = other.value_mean_ - value_mean_;
    second_ += weight * other.second_;
    cross_ += weight * other.cross_;
    add_shift(normaliser_ * share, shift, value_shift);
    mean_ += share * shift;
    value_mean_ += share * value_shift;
    normaliser_ = sum;
  }

 private:
  /// The tokens of a block relative to what is there: weights, and deviations from the means so far.
  struct Deviations {
    Rows<S> keys, values;
    S* weights;
  };

  bool is_full() const { return options_.covariance == Covariance::full; }

  /// Whether no token is non-finite, and no row's normaliser below e^-40 of the block's.
  bool admits(const ClosureTokens<S>& tokens, const VisibleTokens& visible, Index n) const {
    constexpr S kInfinity = std::numeric_limits<S>::infinity();
    const S highest = largest(tokens.all_log_weights());
    if (!(highest < kInfinity && all_finite<S>(tokens.k) && all_finite<S>(tokens.v))) return false;
    // The log-scale only grows along the rows: the first row that sees anything decides.
    Index seen = visible(0);
    for (Index t = 1; empty() && seen == 0 && t < n; ++t) seen = visible(t);
    const S running = (std::max)(log_scale_, largest(tokens.all_log_weights().head(seen)));
    return (std::max)(log_scale_, highest) - running <= kSafeGap<S>;
  }

  void raise(S log_scale) {
    if (log_scale == log_scale_) return;
    const S shrink = flushed_exp(log_scale_ - log_scale);
    log_scale_ = log_scale;
    if (normaliser_ == 0) return;
    normaliser_ *= shrink;
    second_ *= shrink;
    cross_ *= shrink;
  }

  /// Raises the log-scale to take in the tokens. With none so far, any token may stand for the mean.
  Deviations take_keys(Workspace::Frame& frame, const ClosureTokens<S>& tokens) {
    const Index m = tokens.size();
    const S highest = largest(tokens.all_log_weights());
    raise(highest > log_scale_ || std::isnan(highest) ? highest : log_scale_);
    auto weights = frame.vector<S>(m);
    weights = (tokens.all_log_weights().array() - log_scale_).unaryExpr(FlushedExp<S>{});
    if (empty()) {
      Index first = 0;
      while (first + 1 < m && weights(first) == 0) ++first;
      mean_ = tokens.key(first);
      value_mean_ = tokens.value(first);
    }
    const Deviations deviations{frame.rows<S>(m, mean_.size()), frame.rows<S>(m, value_mean_.size()),
                                weights.data()};
    for (Index j = 0; j < m; ++j) {
      deviations.keys.eigen().row(j) = tokens.key(j) - mean_;
      deviations.values.eigen().row(j) = tokens.value(j) - value_mean_;
    }
    return deviations;
  }

  /// The tokens that take_keys() has prepared become part of the moments.
  void absorb(const ClosureTokens<S>& tokens, const Deviations& of) {
    const Index m = tokens.size();
    for (Index j = 0; j < m; ++j) {
      count_.add(static_cast<double>(tokens.log_counts[j]));
      hull_.add(tokens.value(j));
    }
    const Eigen::Map<const Vector<S>> weights(of.weights, m);
    const S sum = normaliser_ + weights.sum();
    if (sum == normaliser_) return;
    Workspace::Frame frame;
    auto deviations = of.keys.eigen(), value_deviations = of.values.eigen();
    Eigen::Map<RowVector<S>> mean(frame.numbers<S>(mean_.size()), mean_.size());
    Eigen::Map<RowVector<S>> value_mean(frame.numbers<S>(value_mean_.size()), value_mean_.size());
    mean.setZero();
    value_mean.setZero();
    for (Index j = 0; j < m; ++j) {
      mean += (weights(j) / sum) * deviations.row(j);
      value_mean += (weights(j) / sum) * value_deviations.row(j);
    }
    if (m == 1) {
      // w (1 - w/Z)^2 + Z_0 (w/Z)^2 = Z_0 w / Z
      if (normaliser_ != 0)
        add_shift(normaliser_ * (weights(0) / sum), deviations.row(0), value_deviations.row(0));
    } else {
      add_shift(normaliser_, mean, value_mean);
      const Rows<S> weighted = frame.rows<S>(m, mean_.size());
      for (Index j = 0; j < m; ++j) {
        deviations.row(j) -= mean;
        value_deviations.row(j) -= value_mean;
        weighted.eigen().row(j) = weights(j) * deviations.row(j);
      }
      if (is_full()) {
        transposed_multiply_add<S>(weighted, of.keys, second_);
      } else {
        second_.row(0) += weighted.eigen().cwiseProduct(deviations).colwise().sum();
      }
      transposed_multiply_add<S>(weighted, of.values, cross_);
    }
    mean_ += mean;
    value_mean_ += value_mean;
    normaliser_ = sum;
  }

  /// Weight on the outer products of one deviation of key and value.
  template <class Key, class Value>
  void add_shift(S weight, const Key& key, const Value& value) {
    if (is_full()) {
      for (Index l = 0; l < key.size(); ++l) second_.row(l) += (weight * key(l)) * key;
    } else {
      second_.row(0) += weight * key.cwiseProduct(key);
    }
    for (Index l = 0; l < key.size(); ++l) cross_.row(l) += (weight * key(l)) * value;
  }

  /// Rows x against the moments and, with `tokens`, against those of the block that each row sees:
  ///
  ///     y_j = x . (y_j - mu_0),  ybar = sum w_j y_j / Z,   Z sigma^2 = x' S_0 x + Z_0 ybar^2 + sum w_j (y_j - ybar)^2
  ///     out = nu_0 + (tau K_0 x + sum w_j (1 + tau (y_j - ybar)) (v_j - nu_0)) / Z
  ///
  /// where 0 marks the moments before the block (S_0, K_0 as sums). Queries come as lengths times units, so that
  /// squares stay in range.
  AttentionStatus read_rows(Rows<const S> x, const VisibleTokens& visible, const ClosureTokens<S>* tokens,
                            const Deviations& deviations, const RowSums<S>& out) const {
    Workspace::Frame frame;
    const Index n = x.rows, d = x.cols;
    const Index m = tokens ? tokens->size() : 0;
    const Rows<S> units = frame.rows<S>(n, d), products = frame.rows<S>(n, m);
    S* const lengths = frame.numbers<S>(n);
    load_units(x, units, lengths);
    const Rows<S> spread = frame.rows<S>(is_full() ? n : 0, d);
    if (is_full()) multiply<S>(units, second_, spread);
    if (m > 0) multiply_transposed<S>(units, deviations.keys, products, visible.diagonal());
    multiply<S>(units, cross_, out.sums);

    LogCount count = count_;
    RunningSpread<S> running(is_full() ? 0 : d, normaliser_, second_, frame);
    S normaliser = normaliser_;
    for (Index t = 0, seen = 0; t < n; ++t) {
      for (; m > 0 && seen < visible(t); ++seen) {
        normaliser += deviations.weights[seen];
        count.add(static_cast<double>(tokens->log_counts[seen]));
        if (!is_full()) running.add(deviations.weights[seen], deviations.keys.eigen().row(seen));
      }
      Eigen::Map<RowVector<S>> row(products.row(t), m);
      if (normaliser == 0) {
        row.setZero();
        out.set_nothing(t);
        continue;
      }
      const S length = lengths[t];
      const Eigen::Map<const RowVector<S>> weights(deviations.weights, seen), unit(units.row(t), d);
      auto y = row.head(seen);
      const S mean = seen > 0 ? weights.dot(y) / normaliser : S(0);
      y.array() -= mean;
      const S variance =
          is_full() ? (unit.dot(Eigen::Map<const RowVector<S>>(spread.row(t), d)) +
                       normaliser_ * mean * mean + (seen > 0 ? weights.dot(y.cwiseProduct(y)) : S(0))) /
                          normaliser
                    : running.variance(unit) / normaliser;
      const S sigma = length * std::sqrt((std::max)(variance, S(0)));
      if (sigma == std::numeric_limits<S>::infinity()) {  // squares that leave the range say nothing
        row.setZero();
        out.log_scale[t] = log_scale_;
        out.set_out_of_range(t);
        continue;
      }
      const auto frozen = static_cast<S>(options_.freezing * std::sqrt(2 * (std::max)(count.log(), 0.0)));
      const S tau = sigma > frozen ? frozen / sigma : S(1);
      const S energy = sigma > frozen ? frozen * (sigma - frozen / 2) : sigma * sigma / 2;
      out.log_scale[t] = log_scale_ + std::log(normaliser) + length * (unit.dot(mean_) + mean) + energy;
      out.normaliser[t] = 1;
      out.row(t) *= tau * length / normaliser;
      y.array() = weights.array() * (1 + (tau * length) * y.array()) / normaliser;
      row.tail(m - seen).setZero();
    }
    if (m > 0) multiply_add<S>(products, deviations.values, out.sums, visible.diagonal());
    return finish(visible, tokens, out);
  }

  /// From deviations to values, inside the hull if that was asked for.
  AttentionStatus finish(const VisibleTokens& visible, const ClosureTokens<S>* tokens,
                         const RowSums<S>& out) const {
    AttentionStatus status;
    ValueHull<S> hull = hull_;
    for (Index t = 0, seen = 0; t < out.rows(); ++t) {
      if (out.is_nothing(t)) continue;
      out.row(t) += value_mean_;
      if (!options_.clamp) continue;
      for (; tokens && seen < visible(t); ++seen) hull.add(tokens->value(seen));
      if (hull.clamp(out.row(t))) ++status.clamped_rows;
    }
    return status;
  }

  static void load_units(Rows<const S> x, Rows<S> units, S* lengths) {
    for (Index t = 0; t < x.rows; ++t) {
      const Eigen::Map<const RowVector<S>> row(x.row(t), x.cols);
      const S length = largest(row.cwiseAbs());
      lengths[t] = length == 0 ? S(1) : length;
      units.eigen().row(t) = row / lengths[t];
    }
  }

  ClosureOptions options_;
  S log_scale_ = kNothing<S>;  // c
  S normaliser_ = 0;           // Z e^-c
  LogCount count_;             // N
  RowVector<S> mean_;          // mu
  RowVector<S> value_mean_;    // nu
  Matrix<S> second_;           // Z S e^-c, (d, d), or (1, d) of its diagonal
  Matrix<S> cross_;            // Z K' e^-c, (d, dv)
  ValueHull<S> hull_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
