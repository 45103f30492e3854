#pragma once

// What the library's own maps and kernels were called by up to version 0.1: each name passes the call on to the one
// verb of today. Nothing of it is compiled unless it is called.

#include <phiattn/similarity.hpp>

#include <concepts>

namespace phiattn::inline PHIATTN_ABI::detail {

template <class Derived, class S>
class FormerKernelCalls {
 public:
  template <HasLogSimilarity K = Derived>
  [[deprecated("phiattn: call similarity(q, k, tile)")]] void log_similarity(const ConstMatrixRef<S>& q,
                                                                             const ConstMatrixRef<S>& k,
                                                                             MatrixRef<S> tile) const {
    static_cast<const K&>(*this).similarity(q, k, tile);
  }

  template <HasSignedSimilarity K = Derived>
  [[deprecated("phiattn: call similarity(q, k, tile, log_scale)")]] void signed_similarity(
      const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile,
      VectorRef<S> log_scale) const {
    static_cast<const K&>(*this).similarity(q, k, tile, log_scale);
  }
};

/// Maps that have the names of both sides from their base: not those that wrote them themselves.
template <class F>
concept FormerlyCalledLog = std::same_as<typename F::Kind, LogFeatureMapTag> &&
    (HasFeatures<F> || FormerLogFeaturesUniform<F> || FormerLogFeaturesPositioned<F>);
template <class F>
concept FormerlyCalledSigned = std::same_as<typename F::Kind, SignedFeatureMapTag> &&
    (HasFeatures<F> || FormerSignedFeaturesUniform<F> || FormerSignedFeaturesPositioned<F>);

/// Maps that have the name of neither side from their base.
template <class F, class Tag>
concept FormerlyCalledAlike = std::same_as<typename F::Kind, Tag> && HasFeatures<F> && requires {
  requires F::kUniform;
};

template <class Derived, class S>
class FormerFeatureCalls {
 public:
#define PHIATTN_FORMER_CALLS(Kind, name)                                                               \
  template <FormerlyCalled##Kind F = Derived>                                                          \
  [[deprecated("phiattn: call features(Side::queries, x, first, block)")]] void name##_query_features( \
      const ConstMatrixRef<S>& x, Index first, MatrixRef<S> values, VectorRef<S> log_scale) const {    \
    fill_features<F>(static_cast<const F&>(*this), Side::queries, x, first, {values, log_scale});      \
  }                                                                                                    \
  template <FormerlyCalled##Kind F = Derived>                                                          \
  [[deprecated("phiattn: call features(Side::keys, x, first, block)")]] void name##_key_features(      \
      const ConstMatrixRef<S>& x, Index first, MatrixRef<S> values, VectorRef<S> log_scale) const {    \
    fill_features<F>(static_cast<const F&>(*this), Side::keys, x, first, {values, log_scale});         \
  }                                                                                                    \
  template <FormerlyCalledAlike<Kind##FeatureMapTag> F = Derived>                                      \
  [[deprecated("phiattn: call features(side, x, first, block)")]] void name##_features(                \
      const ConstMatrixRef<S>& x, MatrixRef<S> values, VectorRef<S> log_scale) const {                 \
    fill_features<F>(static_cast<const F&>(*this), Side::keys, x, 0, {values, log_scale});             \
  }

  PHIATTN_FORMER_CALLS(Log, log)
  PHIATTN_FORMER_CALLS(Signed, signed)
#undef PHIATTN_FORMER_CALLS
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
