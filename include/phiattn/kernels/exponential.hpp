#pragma once

// The kernel of softmax attention.

#include <phiattn/core/product.hpp>
#include <phiattn/former_calls.hpp>
#include <phiattn/similarity.hpp>

namespace phiattn::inline PHIATTN_ABI {

/// sim(q, k) = exp(q . k), with scale 1/sqrt(d): softmax attention (Vaswani et al. 2017, eq. 1).
/// Cost of attention with it: 2 n_q n_k (d + dv) flops and n_q n_k exponentials.
template <detail::ComputeScalar S>
class ExponentialKernel : public detail::FormerKernelCalls<ExponentialKernel<S>, S> {
 public:
  using Scalar = S;
  using Kind = LogKernelTag;
  static constexpr bool kScaleOnQueries = true;
  static constexpr bool kNeverZero = true;
  static constexpr bool kExponential = true;

  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile) const {
    detail::multiply_transposed<S>(q, k, tile);
  }
};

}  // namespace phiattn::inline PHIATTN_ABI
