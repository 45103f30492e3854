#pragma once

// Random Fourier features of shift-invariant kernels.

#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/spectra.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// Random Fourier features (Rahimi & Recht 2007), for m' frequencies:
///
///     phi(x) = [cos(omega_1 . x), ..., cos(omega_m' . x), sin(omega_1 . x), ..., sin(omega_m' . x)] / sqrt(m')
///
/// E[phi(q) . phi(k)] = E[cos(omega . (q - k))] = sim(q - k) if omega follows the Fourier transform of sim (Bochner), as
/// in feature_maps/spectra.hpp: the Gaussian, Laplace and Matern kernels. cos is even: give it frequencies without
/// their negatives. A projection with log-weights ln w_r multiplies the features of omega_r by sqrt(w_r).
///
/// Variance for iid frequencies, of a kernel with sim(0) = 1: ((1 + sim(2 (q - k))) / 2 - sim(q - k)^2) / m'. It is
/// absolute: some 1/(2 m') wherever the kernel is small, and a normaliser made of small kernels comes out of either
/// sign; attention reports the rows. It works where queries have keys within a few sigma. Default scale 1.
/// @param omega  (m', d), one frequency a row; 2 m' features
/// @throws std::invalid_argument  if omega has no rows or no columns
/// Cost: 2 n m' d flops, n m' cosines and n m' sines for n tokens.
template <detail::ComputeScalar S>
class RandomFourierFeatures : public SignedFeatureMapBase<RandomFourierFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;

  explicit RandomFourierFeatures(Projection<S> omega)
      : omega_(std::move(omega)), amplitude_(RowVector<S>::Ones(omega_.rows())) {
    if (omega_.log_weights().size() > 0)
      amplitude_ = (omega_.log_weights() / 2).array().exp().matrix().transpose();
    amplitude_ /= std::sqrt(static_cast<S>(omega_.rows()));
  }

  /// @param omega  any Eigen matrix
  template <class Derived>
  explicit RandomFourierFeatures(const Eigen::MatrixBase<Derived>& omega)
      : RandomFourierFeatures(Projection<S>(omega)) {}

  Index dimension() const { return omega_.cols(); }
  Index feature_dimension() const { return 2 * omega_.rows(); }

  const Projection<S>& projection() const { return omega_; }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    auto cosines = block.values.leftCols(omega_.rows());
    auto sines = block.values.rightCols(omega_.rows());
    omega_.project(x, cosines);
    for (Index t = 0; t < x.rows(); ++t) {
      sines.row(t) = cosines.row(t).array().sin() * amplitude_.array();
      cosines.row(t) = cosines.row(t).array().cos() * amplitude_.array();
    }
    block.log_scale.setZero();
  }

 private:
  Projection<S> omega_;
  RowVector<S> amplitude_;
};

}  // namespace phiattn::inline PHIATTN_ABI
