#pragma once

// What a similarity must offer. Attention with any of them is
//
//     out_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j)
//
// A kernel gives sim(q, k) for pairs; a feature map gives phi(q) and varphi(k) with sim(q, k) = phi(q) . varphi(k).
// Either comes in two kinds: positive ones hand over logarithms, signed ones values with one log-scale a row, so
// that nothing overflows.

#include <phiattn/core/matrix.hpp>
#include <phiattn/feature_block.hpp>

#include <cmath>
#include <concepts>

namespace phiattn::inline PHIATTN_ABI {

/// A type says by its Kind which concept it means to model, and is held to that one.
struct LogKernelTag {};
struct SignedKernelTag {};
struct LogFeatureMapTag {};
struct SignedFeatureMapTag {};

namespace detail {

template <class F, class Tag>
concept SimilarityOf = std::copyable<F> && ComputeScalar<typename F::Scalar> &&
    std::same_as<typename F::Kind, Tag> && requires(const F& f, Index d) {
  { f.default_scale(d) } -> std::convertible_to<double>;
};

template <class F>
concept HasFeatureDimensions = requires(const F& f) {
  { f.dimension() } -> std::same_as<Index>;
  { f.feature_dimension() } -> std::same_as<Index>;
};

template <class F>
concept HasFeatures = requires(const F& f, Side side, ConstMatrixRef<typename F::Scalar> x, Index first,
                               FeatureBlock<typename F::Scalar> block) {
  f.features(side, x, first, block);
};

template <class F>
concept HasLogSimilarity = requires(const F& f, ConstMatrixRef<typename F::Scalar> x,
                                    MatrixRef<typename F::Scalar> tile) {
  f.similarity(x, x, tile);
};

template <class F>
concept HasSignedSimilarity = requires(const F& f, ConstMatrixRef<typename F::Scalar> x,
                                       MatrixRef<typename F::Scalar> tile,
                                       VectorRef<typename F::Scalar> log_scale) {
  f.similarity(x, x, tile, log_scale);
};

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI

#include <phiattn/former_names.hpp>

namespace phiattn::inline PHIATTN_ABI {

/// A kernel with sim > 0. For queries q (n_q, d) and keys k (n_k, d) `similarity` fills a tile (n_q, n_k):
///     tile(t, j) = log sim(q_t, k_j)
template <class F>
concept LogKernel = detail::SimilarityOf<F, LogKernelTag> &&
    (detail::HasLogSimilarity<F> || detail::FormerLogKernel<F>);

/// A kernel of either sign, with one log-scale a row:  sim(q_t, k_j) = tile(t, j) exp(log_scale(t)).
template <class F>
concept SignedKernel = detail::SimilarityOf<F, SignedKernelTag> &&
    (detail::HasSignedSimilarity<F> || detail::FormerSignedKernel<F>);

/// A map with phi >= 0. Of tokens x (n, d), the first of them at position `first`, `features` fills in
///     log phi_i(x_t) = values(t, i) + log_scale(t)
/// or those of varphi, by the side.
template <class F>
concept LogFeatureMap = detail::SimilarityOf<F, LogFeatureMapTag> && detail::HasFeatureDimensions<F> &&
    (detail::HasFeatures<F> || detail::FormerLogFeatures<F>);

/// A map of either sign:  phi_i(x_t) = values(t, i) exp(log_scale(t)).
template <class F>
concept SignedFeatureMap = detail::SimilarityOf<F, SignedFeatureMapTag> && detail::HasFeatureDimensions<F> &&
    (detail::HasFeatures<F> || detail::FormerSignedFeatures<F>);

template <class F>
concept Kernel = LogKernel<F> || SignedKernel<F>;
template <class F>
concept FeatureMap = LogFeatureMap<F> || SignedFeatureMap<F>;
template <class F>
concept Similarity = Kernel<F> || FeatureMap<F>;

/// A map that takes queries and keys alike, wherever they stand, and says so by `static constexpr bool kUniform = true`:
/// both may then come in one block.
template <class F>
concept UniformFeatureMap = FeatureMap<F> && requires {
  requires F::kUniform;
};

namespace detail {

/// A map chosen at run time, which says then whether it is uniform.
template <class F>
concept UniformAtRunTime = FeatureMap<F> && requires(const F& f) {
  { f.is_uniform() } -> std::same_as<bool>;
};

template <FeatureMap F>
bool is_uniform(const F& map) {
  if constexpr (UniformAtRunTime<F>) {
    return map.is_uniform();
  } else {
    return UniformFeatureMap<F>;
  }
}

/// Whether a similarity says, by `static constexpr bool kNeverZero = true` or, where that is known at run time, by
/// is_never_zero(), that it is positive for any two tokens: where it comes out as 0 for all keys, exponents have left
/// the range of its scalar, and the row is NaN and not that of no keys.
template <Similarity F>
bool is_never_zero(const F& similarity) {
  if constexpr (requires { similarity.is_never_zero(); }) {
    return similarity.is_never_zero();
  } else if constexpr (requires { F::kNeverZero; }) {
    return F::kNeverZero;
  } else {
    return false;
  }
}

/// The features of any map, by whichever name it has them.
template <FeatureMap F>
void fill_features(const F& map, Side side, const ConstMatrixRef<typename F::Scalar>& x, Index first,
                   FeatureBlock<typename F::Scalar> block) {
  if constexpr (HasFeatures<F>) {
    map.features(side, x, first, block);
  } else {
    former_features(map, side, x, first, block);
  }
}

/// The same for kernels; the log-scale of a positive one stays as it is.
template <Kernel K>
void fill_similarity(const K& kernel, const ConstMatrixRef<typename K::Scalar>& q,
                     const ConstMatrixRef<typename K::Scalar>& k, MatrixRef<typename K::Scalar> tile,
                     VectorRef<typename K::Scalar> log_scale) {
  if constexpr (HasLogSimilarity<K>) {
    kernel.similarity(q, k, tile);
  } else if constexpr (HasSignedSimilarity<K>) {
    kernel.similarity(q, k, tile, log_scale);
  } else {
    former_similarity(kernel, q, k, tile, log_scale);
  }
}

}  // namespace detail

namespace detail {

/// Whether a kernel says, by `static constexpr bool kScaleOnQueries = true`, that it depends on q . k alone, or not on the
/// length of q at all: the scale may then be on the queries, and keys are read where they lie.
template <class K>
inline constexpr bool kScaleOnQueries = requires {
  requires K::kScaleOnQueries;
};

}  // namespace detail

/// The default scale of exp(q . k) and of whatever approximates it: 1/sqrt(d).
inline double inverse_sqrt_scale(Index d) { return d > 0 ? 1 / std::sqrt(static_cast<double>(d)) : 1; }

}  // namespace phiattn::inline PHIATTN_ABI
