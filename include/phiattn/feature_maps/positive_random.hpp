#pragma once

// Performer's feature map.

#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// Positive random features of the exponential kernel.
///
///     phi_i(x) = sqrt(w_i / m) exp(omega_i . x - |x|^2 / 2)
///
/// E[phi(q) . phi(k)] = exp(q . k) when each row of omega is N(0, I) and w_i = 1   (Choromanski et al. 2021,
/// Lemma 1); a projection with log-weights ln w_i stands for other frequencies that do the same. Relative
/// variance for iid rows: (e^{|q+k|^2} - 1)/m. It is the reason why the map fails at large norms: there
/// uniform attention is nearer to softmax attention than this is.
/// @throws std::invalid_argument  if omega has no rows or no columns
/// Cost: 2 n m d flops for n tokens (half of it with an antithetic projection, less with a Hadamard one) and
/// n m exponentials.
template <detail::ComputeScalar S>
class PositiveRandomFeatures : public LogFeatureMapBase<PositiveRandomFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;
  static constexpr bool kNeverZero = true;

  explicit PositiveRandomFeatures(Projection<S> omega) : omega_(std::move(omega)) {}

  /// @param omega  (m, d), one frequency a row; any Eigen matrix
  template <class Derived>
  explicit PositiveRandomFeatures(const Eigen::MatrixBase<Derived>& omega) : omega_(omega) {}

  Index dimension() const { return omega_.cols(); }
  Index feature_dimension() const { return omega_.rows(); }
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  const Projection<S>& projection() const { return omega_; }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    omega_.project(x, block.values);
    const S log_root_m = std::log(static_cast<S>(feature_dimension())) / 2;
    const Vector<S>& log_weights = omega_.log_weights();
    for (Index t = 0; t < x.rows(); ++t) {
      if (log_weights.size() > 0) block.values.row(t) += log_weights.transpose() / 2;
      block.log_scale(t) = -x.row(t).squaredNorm() / 2 - log_root_m;
    }
  }

 private:
  Projection<S> omega_;
};

}  // namespace phiattn::inline PHIATTN_ABI
