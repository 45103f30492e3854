#pragma once

// Any function of a query and a key as a kernel.

#include <phiattn/former_calls.hpp>
#include <phiattn/similarity.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// A function of two row vectors (1, d) of scalar S.
template <class F, class S>
concept PairwiseFunction = requires(const F& f, const ConstMatrixRef<S>& x) {
  { f(x.row(0), x.row(0)) } -> std::convertible_to<double>;
};

/// A user's own similarity, called once a pair: made by log_kernel and signed_kernel.
/// Cost of attention with it: n_q n_k calls beside 2 n_q n_k dv flops; a kernel of its own works on tiles.
template <detail::ComputeScalar S, class Tag, PairwiseFunction<S> F>
class PairwiseKernel : public detail::FormerKernelCalls<PairwiseKernel<S, Tag, F>, S> {
 public:
  using Scalar = S;
  using Kind = Tag;

  explicit PairwiseKernel(F similarity) : similarity_(std::make_shared<const F>(std::move(similarity))) {}

  static double default_scale(Index) { return 1; }

  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k,
                  MatrixRef<S> tile) const requires std::same_as<Tag, LogKernelTag> {
    call_pairs(q, k, tile);
  }

  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile,
                  VectorRef<S> log_scale) const requires std::same_as<Tag, SignedKernelTag> {
    call_pairs(q, k, tile);
    log_scale.setZero();
  }

 private:
  void call_pairs(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile) const {
    for (Index t = 0; t < q.rows(); ++t) {
      for (Index j = 0; j < k.rows(); ++j) tile(t, j) = static_cast<S>((*similarity_)(q.row(t), k.row(j)));
    }
  }

  std::shared_ptr<const F> similarity_;
};

/// The kernel with log sim(q, k) = f(q, k), for row vectors q and k (1, d) of scalar S; default scale 1. -inf is legal:
/// the pair does not attend.
template <detail::ComputeScalar S, PairwiseFunction<S> F>
PairwiseKernel<S, LogKernelTag, F> log_kernel(F f) {
  return PairwiseKernel<S, LogKernelTag, F>(std::move(f));
}

/// The kernel with sim(q, k) = f(q, k), of either sign and representable as it is.
template <detail::ComputeScalar S, PairwiseFunction<S> F>
PairwiseKernel<S, SignedKernelTag, F> signed_kernel(F f) {
  return PairwiseKernel<S, SignedKernelTag, F>(std::move(f));
}

}  // namespace phiattn::inline PHIATTN_ABI
