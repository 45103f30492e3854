#pragma once

// A kernel of angles.

#include <phiattn/core/check.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/former_calls.hpp>
#include <phiattn/similarity.hpp>

#include <cmath>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// sim(q, k) = exp(tau q . k / (|q| |k|)), default scale 1: query-key normalisation (Henry et al. 2020).
///
/// The cosine with a vector 0 is 0. No weight among n keys exceeds 1 / (1 + (n - 1) e^{-2 tau}).
/// @param temperature  tau, finite
/// @throws std::invalid_argument  if the temperature is not finite
/// Cost of attention with it: 2 n_q n_k (d + dv) flops and n_q n_k exponentials.
template <detail::ComputeScalar S>
class CosineKernel : public detail::FormerKernelCalls<CosineKernel<S>, S> {
 public:
  using Scalar = S;
  using Kind = LogKernelTag;
  static constexpr bool kScaleOnQueries = true;
  static constexpr bool kNeverZero = true;

  explicit CosineKernel(double temperature) : temperature_(static_cast<S>(temperature)) {
    if (!std::isfinite(temperature_)) {
      detail::fail_argument("temperature of CosineKernel: got " + detail::number(temperature) +
                            ", expected a finite number");
    }
  }

  static double default_scale(Index) { return 1; }

  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile) const {
    detail::with_scratch<S>(k.rows(), k.cols(), [&](Eigen::Map<Matrix<S>> directions) {
      for (Index j = 0; j < k.rows(); ++j) directions.row(j) = k.row(j) / norm_or_one(k.row(j));
      detail::multiply_transposed<S>(q, directions, tile);
    });
    for (Index t = 0; t < tile.rows(); ++t) {
      tile.row(t) = (tile.row(t) / norm_or_one(q.row(t))) * temperature_;
    }
  }

 private:
  /// |x|, and 1 for the vector 0: x / |x| is to be 0. The squares of tiny coordinates would vanish.
  template <class Row>
  static S norm_or_one(const Row& x) {
    const S norm = x.stableNorm();
    return norm == 0 ? S(1) : norm;
  }

  S temperature_;
};

}  // namespace phiattn::inline PHIATTN_ABI
