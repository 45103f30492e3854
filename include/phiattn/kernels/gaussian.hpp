#pragma once

// A kernel of distances.

#include <phiattn/core/check.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/former_calls.hpp>
#include <phiattn/similarity.hpp>

#include <cmath>

namespace phiattn::inline PHIATTN_ABI {

/// sim(q, k) = exp(-|q - k|^2 / (2 sigma^2)), default scale 1   (Tsai et al. 2019; Chen et al. 2021, "Skyformer").
///
/// Normalised, it is softmax attention with a bias on the keys, softmax_j(q . k_j / sigma^2 - |k_j|^2 / (2 sigma^2)),
/// and softmax attention itself where all keys are of one length.
/// @throws std::invalid_argument  if sigma is not positive and finite, or its square or the inverse of that is not
/// Cost of attention with it: 2 n_q n_k (d + dv) flops and n_q n_k exponentials. The distance comes from q . k and the
/// norms: the error of its square is of the order eps (|q|^2 + |k|^2), and these must be representable over sigma^2.
template <detail::ComputeScalar S>
class GaussianKernel : public detail::FormerKernelCalls<GaussianKernel<S>, S> {
 public:
  using Scalar = S;
  using Kind = LogKernelTag;
  static constexpr bool kNeverZero = true;

  explicit GaussianKernel(double sigma) : inverse_variance_(static_cast<S>(1 / (sigma * sigma))) {
    if (!(sigma > 0) || !std::isfinite(inverse_variance_) || inverse_variance_ == 0) {
      detail::fail_positive("sigma of GaussianKernel", sigma);
    }
  }

  static double default_scale(Index) { return 1; }

  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile) const {
    detail::multiply_transposed<S>(q, k, tile);
    detail::with_scratch<S>(1, k.rows(), [&](Eigen::Map<Matrix<S>> half_norms) {
      half_norms = k.rowwise().squaredNorm().transpose() / 2;
      for (Index t = 0; t < tile.rows(); ++t) {
        const S half_norm = q.row(t).squaredNorm() / 2;
        tile.row(t).array() = ((tile.row(t) - half_norms).array() - half_norm) * inverse_variance_;
      }
    });
  }

 private:
  S inverse_variance_;
};

}  // namespace phiattn::inline PHIATTN_ABI
