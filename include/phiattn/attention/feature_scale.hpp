#pragma once

// The log-scale of a linear state: why it needs no epsilon. Next: attention/linear_state.hpp.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/similarity.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace phiattn::detail {

/// A block of causal rows whose later keys would push an earlier row's normaliser below e^-40 is halved.
template <class S>
inline constexpr S kSafeGap = 40;

/// exp(from - to) for to >= from; kNothing - kNothing is 0.
template <class S>
S decay(S from, S to) {
  return flushed_exp(from - to);
}

/// The scale of positive maps: one logarithm for each feature, c_i = max_j b_i(k_j). The state then holds sums over
/// exp(b - c), and a query weighs them by exp(a_i + c_i - max_i(a_i + c_i)): every term is in [0, 1], and one product
/// is exactly 1.
template <class S>
class PerFeatureScale {
 public:
  static constexpr bool kPositive = true;

  explicit PerFeatureScale(Index m) : log_(RowVector<S>::Constant(m, kNothing<S>)) {}

  /// Moves what belongs to a row (|k|^2/2, 1/m, weights) into its features, which are logarithms.
  static void settle_keys(MatrixRef<S> b, const ConstVectorRef<S>& log_scale) {
    for (Index j = 0; j < b.rows(); ++j) b.row(j).array() += log_scale(j);
  }

  /// Whether rows a and b can be taken as one block: no feature is non-finite and, with C the scale after all keys and c(t) the one after row t's,
  ///     max_i(a_ti + C_i) - max_i(a_ti + c_i(t)) <= 40   for every t
  bool admits(const ConstMatrixRef<S>& a, const ConstMatrixRef<S>& b, const ConstVectorRef<S>&) {
    if (!(largest(b) < std::numeric_limits<S>::infinity())) return false;
    running_ = log_.cwiseMax(b.row(0));
    raise_over(b);
    if ((raised_ - running_).maxCoeff() <= kSafeGap<S>) return true;
    for (Index t = 0; t < a.rows(); ++t) {
      running_ = running_.cwiseMax(b.row(t));
      if ((a.row(t) + raised_).maxCoeff() - (a.row(t) + running_).maxCoeff() > kSafeGap<S>) return false;
    }
    return true;
  }

  /// Raises the scale to take in keys b, which become weights exp(b - c); the sums so far follow.
  void take_keys(MatrixRef<S> b, const ConstVectorRef<S>&, Matrix<S>& sums, Vector<S>& normaliser) {
    raise_over(b);
    raise(sums, normaliser);
    for (Index j = 0; j < b.rows(); ++j) {
      b.row(j) = (b.row(j) - log_).unaryExpr(FlushedExp<S>{});
    }
  }

  /// Queries a become weights on the sums; log_scale(t) += the scale they were divided by.
  void take_queries(MatrixRef<S> a, VectorRef<S> log_scale) const {
    if (largest(log_) == kNothing<S>) {
      a.setZero();
      log_scale.setConstant(kNothing<S>);
      return;
    }
    for (Index t = 0; t < a.rows(); ++t) {
      a.row(t) += log_;
      const S shift = std::max(a.row(t).maxCoeff(), kNothing<S>);
      exp_shifted(a.row(t), shift);
      log_scale(t) += shift;
    }
  }

  /// Raises this scale and `other` to the larger of both: these sums follow, and `weight(i)` is what the sums of the
  /// other must be multiplied by.
  void merge(const PerFeatureScale& other, Matrix<S>& sums, Vector<S>& normaliser) {
    raised_ = log_.cwiseMax(other.log_);
    raise(sums, normaliser);
  }
  S weight_of(const PerFeatureScale& other, Index i) const { return decay(other.log_(i), log_(i)); }

 private:
  void raise_over(const ConstMatrixRef<S>& b) {
    raised_ = log_;
    for (Index j = 0; j < b.rows(); ++j) raised_ = raised_.cwiseMax(b.row(j));
  }

  void raise(Matrix<S>& sums, Vector<S>& normaliser) {
    for (Index i = 0; i < log_.size(); ++i) {
      if (raised_(i) == log_(i)) continue;
      const S shrink = decay(log_(i), raised_(i));
      sums.row(i) *= shrink;
      normaliser(i) *= shrink;
    }
    log_ = raised_;
  }

  RowVector<S> log_;
  RowVector<S> raised_;   // scratch: the scale to come
  RowVector<S> running_;  // scratch: the scale after one more row
};

/// The scale of signed maps: one logarithm for the whole state, the largest log-scale of its keys.
template <class S>
class PerStateScale {
 public:
  static constexpr bool kPositive = false;

  explicit PerStateScale(Index /*m*/) {}

  static void settle_keys(MatrixRef<S>, const ConstVectorRef<S>&) {}

  bool admits(const ConstMatrixRef<S>&, const ConstMatrixRef<S>& b,
              const ConstVectorRef<S>& key_log_scale) const {
    constexpr S kInfinity = std::numeric_limits<S>::infinity();
    if (!(largest(b.cwiseAbs()) < kInfinity && largest(key_log_scale) < kInfinity)) return false;
    // The scale only grows along the rows: the first row decides.
    return raised_by(key_log_scale) - std::max(log_, key_log_scale(0)) <= kSafeGap<S>;
  }

  void take_keys(MatrixRef<S> b, const ConstVectorRef<S>& key_log_scale, Matrix<S>& sums,
                 Vector<S>& normaliser) {
    raise(raised_by(key_log_scale), sums, normaliser);
    for (Index j = 0; j < b.rows(); ++j) b.row(j) *= flushed_exp(key_log_scale(j) - log_);
  }

  void take_queries(MatrixRef<S> a, VectorRef<S> log_scale) const {
    if (log_ == kNothing<S>) {
      a.setZero();
      log_scale.setConstant(kNothing<S>);
    } else {
      log_scale.array() += log_;
    }
  }

  void merge(const PerStateScale& other, Matrix<S>& sums, Vector<S>& normaliser) {
    raise(std::max(log_, other.log_), sums, normaliser);
  }
  S weight_of(const PerStateScale& other, Index /*i*/) const { return decay(other.log_, log_); }

 private:
  S raised_by(const ConstVectorRef<S>& key_log_scale) const {
    return std::max(log_, key_log_scale.maxCoeff());
  }

  void raise(S raised, Matrix<S>& sums, Vector<S>& normaliser) {
    if (raised == log_) return;
    const S shrink = decay(log_, raised);
    sums *= shrink;
    normaliser *= shrink;
    log_ = raised;
  }

  S log_ = kNothing<S>;
};

template <FeatureMap Map>
using ScaleOf = std::conditional_t<LogFeatureMap<Map>, PerFeatureScale<typename Map::Scalar>,
                                   PerStateScale<typename Map::Scalar>>;

}  // namespace phiattn::detail
