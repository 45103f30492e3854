#pragma once

// What maps and kernels were asked for up to version 0.1, still taken in its place: one name for each side and kind.
// Included by similarity.hpp alone.

#include <phiattn/feature_block.hpp>

#include <type_traits>

namespace phiattn::inline PHIATTN_ABI::detail {

template <class F>
concept FormerLogKernel = requires(const F& f, ConstMatrixRef<typename F::Scalar> x,
                                   MatrixRef<typename F::Scalar> tile) {
  f.log_similarity(x, x, tile);
};
template <class F>
concept FormerSignedKernel = requires(const F& f, ConstMatrixRef<typename F::Scalar> x,
                                      MatrixRef<typename F::Scalar> tile,
                                      VectorRef<typename F::Scalar> log_scale) {
  f.signed_similarity(x, x, tile, log_scale);
};

/// f.NAME(x, values, log_scale): alike on both sides; f.NAME(x, first, values, log_scale): alike where positions are.
#define PHIATTN_FORMER_FEATURES(Concept, name)                                                             \
  template <class F>                                                                                       \
  concept Concept##Uniform =                                                                               \
      requires(const F& f, ConstMatrixRef<typename F::Scalar> x, MatrixRef<typename F::Scalar> values,     \
               VectorRef<typename F::Scalar> log_scale) {                                                  \
    f.name##_features(x, values, log_scale);                                                               \
  };                                                                                                       \
  template <class F>                                                                                       \
  concept Concept##Positioned =                                                                            \
      requires(const F& f, ConstMatrixRef<typename F::Scalar> x, Index first,                              \
               MatrixRef<typename F::Scalar> values, VectorRef<typename F::Scalar> log_scale) {            \
    f.name##_features(x, first, values, log_scale);                                                        \
  };                                                                                                       \
  template <class F>                                                                                       \
  concept Concept##OfSides =                                                                               \
      requires(const F& f, ConstMatrixRef<typename F::Scalar> x, Index first,                              \
               MatrixRef<typename F::Scalar> values, VectorRef<typename F::Scalar> log_scale) {            \
    f.name##_query_features(x, first, values, log_scale);                                                  \
    f.name##_key_features(x, first, values, log_scale);                                                    \
  };                                                                                                       \
  template <class F>                                                                                       \
  concept Concept = Concept##Uniform<F> || Concept##Positioned<F> || Concept##OfSides<F>;                  \
                                                                                                           \
  template <Concept F, class S = typename F::Scalar>                                                       \
  [[deprecated("phiattn: write features(side, x, first, block) in place of " #name "_..._features")]] void \
  former_features(const F& map, Side side, const ConstMatrixRef<S>& x, Index first,                        \
                  FeatureBlock<S>& block) {                                                                \
    if constexpr (Concept##Uniform<F>) {                                                                   \
      map.name##_features(x, block.values, block.log_scale);                                               \
    } else if constexpr (Concept##Positioned<F>) {                                                         \
      map.name##_features(x, first, block.values, block.log_scale);                                        \
    } else if (side == Side::queries) {                                                                    \
      map.name##_query_features(x, first, block.values, block.log_scale);                                  \
    } else {                                                                                               \
      map.name##_key_features(x, first, block.values, block.log_scale);                                    \
    }                                                                                                      \
  }

PHIATTN_FORMER_FEATURES(FormerLogFeatures, log)
PHIATTN_FORMER_FEATURES(FormerSignedFeatures, signed)
#undef PHIATTN_FORMER_FEATURES

template <class F, class S = typename F::Scalar>
[[deprecated("phiattn: write similarity(...) in place of log_similarity or signed_similarity")]] void
former_similarity(const F& kernel, const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S>& tile,
                  VectorRef<S>& log_scale) {
  if constexpr (FormerLogKernel<F>) {
    kernel.log_similarity(q, k, tile);
  } else {
    kernel.signed_similarity(q, k, tile, log_scale);
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
