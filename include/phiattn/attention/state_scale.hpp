#pragma once

// The log-scale of signed features.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/prefetch.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/rows.hpp>

#include <algorithm>
#include <limits>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Tokens as a map hands them over: features (n, m), in rows of whole packets, and log_scale (n).
template <class S>
struct FeatureRows {
  Rows<S> values;
  S* log_scale;

  Index rows() const { return values.rows; }
  Eigen::Map<Vector<S>> log_scales() const { return {log_scale, values.rows}; }
  FeatureRows middle(Index begin, Index n) const { return {values.middle(begin, n), log_scale + begin}; }
};

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

  void survey(const FeatureRows<S>& keys) { raised_ = (std::max)(log_, keys.log_scales().maxCoeff()); }

  bool admits(const FeatureRows<S>& /*queries*/, const FeatureRows<S>& keys) const {
    if (!all_finite<S>(keys.values) || !(largest(keys.log_scales()) < std::numeric_limits<S>::infinity())) {
      return false;
    }
    // The scale only grows along the rows: the first row decides.
    return raised_ - (std::max)(log_, keys.log_scale[0]) <= kSafeGap<S>;
  }

  void raise(Matrix<S>& sums, Vector<S>& normaliser) {
    if (raised_ == log_) return;
    const S shrink = decay(log_, raised_);
    sums *= shrink;
    normaliser *= shrink;
    log_ = raised_;
  }

  void weigh_keys(const FeatureRows<S>& keys, Vector<S>& normaliser, Prefetch& /*ahead*/) const {
    auto b = keys.values.eigen();
    for (Index j = 0; j < b.rows(); ++j) {
      b.row(j) *= flushed_exp(keys.log_scale[j] - log_);
      normaliser += b.row(j).transpose();
    }
  }

  void weigh_queries(const FeatureRows<S>& queries, const Vector<S>& normaliser, S* normaliser_out,
                     Prefetch& /*ahead*/) const {
    auto a = queries.values.eigen();
    Eigen::Map<Vector<S>> z(normaliser_out, a.rows());
    if (log_ == kNothing<S> && normaliser.isZero(0)) {
      a.setZero();
      z.setZero();
      queries.log_scales().setConstant(kNothing<S>);
    } else {
      z.noalias() = a * normaliser;
      queries.log_scales().array() += log_;
    }
  }

  void merge(const PerStateScale& other, Matrix<S>& sums, Vector<S>& normaliser) {
    raised_ = (std::max)(log_, other.log_);
    raise(sums, normaliser);
  }
  S weight_of(const PerStateScale& other, Index /*i*/) const { return decay(other.log_, log_); }

 private:
  S log_ = kNothing<S>;
  S raised_ = kNothing<S>;  // the scale to come
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
