#pragma once

// What a similarity must offer. Attention with any of them is
//
//     out_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j)
//
// A kernel gives sim(q, k) for pairs; a feature map gives phi(q) and varphi(k) with sim(q, k) = phi(q) . varphi(k).
// Either comes in two kinds: positive ones hand over logarithms, signed ones values with one log-scale a row, so
// that nothing overflows. Next: kernels/exponential.hpp or projection/projection.hpp.

#include <phiattn/core/input.hpp>

#include <cmath>
#include <concepts>

namespace phiattn {

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

}  // namespace detail

/// A kernel with sim > 0. For queries q (n_q, d) and keys k (n_k, d) it fills a tile (n_q, n_k):
///     tile(t, j) = log sim(q_t, k_j)
template <class F>
concept LogKernel = detail::SimilarityOf<F, LogKernelTag> &&
    requires(const F& f, ConstMatrixRef<typename F::Scalar> x, MatrixRef<typename F::Scalar> tile) {
  f.log_similarity(x, x, tile);
};

/// A kernel of either sign, with one log-scale a row:  sim(q_t, k_j) = tile(t, j) exp(log_scale(t)).
template <class F>
concept SignedKernel = detail::SimilarityOf<F, SignedKernelTag> &&
    requires(const F& f, ConstMatrixRef<typename F::Scalar> x, MatrixRef<typename F::Scalar> tile,
             VectorRef<typename F::Scalar> log_scale) {
  f.signed_similarity(x, x, tile, log_scale);
};

/// A map with phi >= 0. For tokens x (n, d), the first of them at position `first`, it fills features (n, m) and
/// log_scale (n):  log phi_i(x_t) = features(t, i) + log_scale(t).
template <class F>
concept LogFeatureMap = detail::SimilarityOf<F, LogFeatureMapTag> && detail::HasFeatureDimensions<F> &&
    requires(const F& f, ConstMatrixRef<typename F::Scalar> x, Index first,
             MatrixRef<typename F::Scalar> features, VectorRef<typename F::Scalar> log_scale) {
  f.log_query_features(x, first, features, log_scale);
  f.log_key_features(x, first, features, log_scale);
};

/// A map of either sign:  phi_i(x_t) = features(t, i) exp(log_scale(t)).
template <class F>
concept SignedFeatureMap = detail::SimilarityOf<F, SignedFeatureMapTag> && detail::HasFeatureDimensions<F> &&
    requires(const F& f, ConstMatrixRef<typename F::Scalar> x, Index first,
             MatrixRef<typename F::Scalar> features, VectorRef<typename F::Scalar> log_scale) {
  f.signed_query_features(x, first, features, log_scale);
  f.signed_key_features(x, first, features, log_scale);
};

template <class F>
concept Kernel = LogKernel<F> || SignedKernel<F>;
template <class F>
concept FeatureMap = LogFeatureMap<F> || SignedFeatureMap<F>;
template <class F>
concept Similarity = Kernel<F> || FeatureMap<F>;

namespace detail {

/// A map that takes queries and keys alike, wherever they stand, so that both may come in one block: it has
/// log_features or signed_features (x, features, log_scale). See LogFeatureMapBase.
template <class F>
concept UniformLogMap = requires(const F& f, ConstMatrixRef<typename F::Scalar> x,
                                 MatrixRef<typename F::Scalar> features,
                                 VectorRef<typename F::Scalar> log_scale) {
  f.log_features(x, features, log_scale);
};
template <class F>
concept UniformSignedMap = requires(const F& f, ConstMatrixRef<typename F::Scalar> x,
                                    MatrixRef<typename F::Scalar> features,
                                    VectorRef<typename F::Scalar> log_scale) {
  f.signed_features(x, features, log_scale);
};
template <class F>
concept UniformMap = UniformLogMap<F> || UniformSignedMap<F>;

}  // namespace detail

/// The default scale of exp(q . k) and of whatever approximates it: 1/sqrt(d).
inline double inverse_sqrt_scale(Index d) { return d > 0 ? 1 / std::sqrt(static_cast<double>(d)) : 1; }

}  // namespace phiattn
