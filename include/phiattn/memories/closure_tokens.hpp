#pragma once

// What the moments of a closure are made from, a block at a time.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/masks/mask.hpp>

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

 private:
  void add(double log_scale, double sum) {
    if (!(log_scale <= log_scale_)) {
      sum_ *= std::exp(log_scale_ - log_scale);
      log_scale_ = log_scale;
    }
    sum_ += sum * std::exp(log_scale - log_scale_);
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

/// The mask of a block's rows over its own tokens, `heads` rows a step: those of step t see the first t + 1, or as many
/// as a table says.
class VisibleTokens {
 public:
  static constexpr bool kPrefix = true;

  explicit VisibleTokens(Index heads = 1, const Index* table = nullptr) : heads_(heads), table_(table) {}

  KeyRange keys(Index row, Index n) const { return {0, std::clamp<Index>((*this)(row), 0, n)}; }
  Index operator()(Index row) const {
    const Index step = step_ + row / heads_;
    return (table_ ? table_[step] : step + 1) - taken_;
  }

  /// Row t sees no more than the first t + diagonal() + 1.
  Index diagonal() const { return table_ ? kNoDiagonal : step_ - taken_; }

  /// Rows that see the same.
  Index heads() const { return heads_; }

  /// The same for the rows from the given step on, with `taken` more tokens in the past.
  VisibleTokens after(Index steps, Index taken) const {
    VisibleTokens later = *this;
    later.step_ += steps;
    later.taken_ += taken;
    return later;
  }

 private:
  Index heads_;
  const Index* table_;
  Index step_ = 0;
  Index taken_ = 0;
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

/// The diagonal second moments as a block's tokens come in, one by one (Welford 1962, with weights).
template <class S>
class RunningSpread {
 public:
  /// @param d  0: not wanted
  RunningSpread(Index d, S normaliser, const Matrix<S>& second, Workspace::Frame& frame)
      : normaliser_(normaliser), mean_(frame.numbers<S>(d), d), second_(frame.numbers<S>(d), d) {
    mean_.setZero();
    if (d > 0) second_ = second.row(0);
  }

  template <class Row>
  void add(S weight, const Row& deviation) {
    if (weight == 0) return;
    const S sum = normaliser_ + weight;
    const S share = weight / sum;
    second_ += (normaliser_ * share) * (deviation - mean_).cwiseAbs2();
    mean_ += share * (deviation - mean_);
    normaliser_ = sum;
  }

  template <class Row>
  S variance(const Row& unit) const {
    return unit.cwiseAbs2().dot(second_);
  }

 private:
  S normaliser_;
  Eigen::Map<RowVector<S>> mean_, second_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
