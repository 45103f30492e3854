#pragma once

// The log-scale of signed features. Next: attention/feature_scale.hpp.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/prefetch.hpp>

#include <algorithm>
#include <limits>

namespace phiattn::detail {

/// A block of causal rows whose later keys would push an earlier row's normaliser below e^-40 is halved.
template <class S>
inline constexpr S kSafeGap = 40;

/// exp(from - to) for to >= from; kNothing - kNothing is 0.
template <class S>
S decay(S from, S to) {
  return flushed_exp(from - to);
}

/// The scale of signed maps: one logarithm for the whole state, the largest log-scale of its keys.
template <class S>
class PerStateScale {
 public:
  using Scalar = S;
  static constexpr bool kPositive = false;
  static constexpr S kPadding = 0;

  explicit PerStateScale(Index /*m*/) {}

  void survey(const ConstMatrixRef<S>&, const ConstVectorRef<S>& log_scale) {
    raised_ = std::max(log_, log_scale.maxCoeff());
  }

  bool admits(const ConstMatrixRef<S>&, const ConstMatrixRef<S>& b,
              const ConstVectorRef<S>& log_scale) const {
    if (!all_finite<S>(b) || !(largest(log_scale) < std::numeric_limits<S>::infinity())) return false;
    // The scale only grows along the rows: the first row decides.
    return raised_ - std::max(log_, log_scale(0)) <= kSafeGap<S>;
  }

  void raise(Matrix<S>& sums, Vector<S>& normaliser) {
    if (raised_ == log_) return;
    const S shrink = decay(log_, raised_);
    sums *= shrink;
    normaliser *= shrink;
    log_ = raised_;
  }

  void weigh_keys(MatrixRef<S> b, const ConstVectorRef<S>& log_scale, Vector<S>& normaliser,
                  Prefetch& /*ahead*/) const {
    for (Index j = 0; j < b.rows(); ++j) {
      b.row(j) *= flushed_exp(log_scale(j) - log_);
      normaliser += b.row(j).transpose();
    }
  }

  void weigh_queries(MatrixRef<S> a, VectorRef<S> log_scale, const Vector<S>& normaliser,
                     VectorRef<S> normaliser_out, Prefetch& /*ahead*/) const {
    if (log_ == kNothing<S> && normaliser.isZero(0)) {
      a.setZero();
      normaliser_out.setZero();
      log_scale.setConstant(kNothing<S>);
    } else {
      normaliser_out.noalias() = a * normaliser;
      log_scale.array() += log_;
    }
  }

  void merge(const PerStateScale& other, Matrix<S>& sums, Vector<S>& normaliser) {
    raised_ = std::max(log_, other.log_);
    raise(sums, normaliser);
  }
  S weight_of(const PerStateScale& other, Index /*i*/) const { return decay(other.log_, log_); }

 private:
  S log_ = kNothing<S>;
  S raised_ = kNothing<S>;  // the scale to come
};

}  // namespace phiattn::detail
