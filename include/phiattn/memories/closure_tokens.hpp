#pragma once

// What the moments of a closure are made from, a block at a time.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phiattn::inline PHIATTN_ABI::detail {

/// log sum_j exp(x_j), in double whatever the compute type: it counts tokens, one at a time.
class LogCount {
 public:
  void add(double x) { add(x, 1); }
  void merge(const LogCount& other) { add(other.log_scale_, other.sum_); }
  double log() const { return log_scale_ + std::log(sum_); }
  /// The deviation of scores beyond which the largest of so many has not been seen: freezing sqrt(2 ln N).
  double frozen(double freezing) const { return freezing * std::sqrt(2 * (std::max)(log(), 0.0)); }

 private:
  void add(double log_scale, double sum) {
    if (!(log_scale <= log_scale_)) {
      sum_ *= std::exp(log_scale_ - log_scale);
      log_scale_ = log_scale;
    }
    // Tokens that count alike are the rule.
    sum_ += log_scale == log_scale_ ? sum : sum * std::exp(log_scale - log_scale_);
  }

  double log_scale_ = kNothing<double>;
  double sum_ = 0;
};

/// The keys of a block in a memory's frame, their values, their whole log-weights, and the caller's own share of
/// those, which says how many tokens each of them is.
template <class S>
struct ClosureTokens {
  Rows<const S> k, v;
  const S *log_weights, *log_counts;  // (n)

  Index size() const { return k.rows; }
  auto key(Index j) const { return Eigen::Map<const RowVector<S>>(k.row(j), k.cols); }
  auto value(Index j) const { return Eigen::Map<const RowVector<S>>(v.row(j), v.cols); }
  auto all_log_weights() const { return Eigen::Map<const Vector<S>>(log_weights, size()); }
  ClosureTokens middle(Index first, Index n) const {
    return {k.middle(first, n), v.middle(first, n), log_weights + first, log_counts + first};
  }
};

/// Smallest and largest value seen in each coordinate; of none if constructed with 0 columns.
template <class S>
class ValueHull {
 public:
  explicit ValueHull(Index dv)
      : lowest_(RowVector<S>::Constant(dv, std::numeric_limits<S>::infinity())), highest_(-lowest_) {}

  template <class Row>
  void add(const Row& v) {
    if (lowest_.size() == 0) return;
    lowest_ = lowest_.cwiseMin(v);
    highest_ = highest_.cwiseMax(v);
  }
  void merge(const ValueHull& other) {
    lowest_ = lowest_.cwiseMin(other.lowest_);
    highest_ = highest_.cwiseMax(other.highest_);
  }
  /// Whether it had to.
  template <class Row>
  bool clamp(Row&& out) const {
    if (!((out.array() < lowest_.array()) || (out.array() > highest_.array())).any()) return false;
    out = out.cwiseMax(lowest_).cwiseMin(highest_);
    return true;
  }

 private:
  RowVector<S> lowest_, highest_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
