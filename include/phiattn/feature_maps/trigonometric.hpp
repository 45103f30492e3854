#pragma once

// The older random features of exp(q . k), made of cosines.

#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/random_fourier.hpp>
#include <phiattn/projection/projection.hpp>

#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// Trigonometric random features of the exponential kernel, for m' frequencies:
///
///     phi(x) = exp(|x|^2 / 2) [cos(omega_1 . x), ..., cos(omega_m' . x), sin(omega_1 . x), ...] / sqrt(m')
///
/// from exp(q . k) = exp(|q|^2/2 + |k|^2/2 - |q - k|^2/2) and random Fourier features of the last factor (Choromanski et
/// al. 2021, "trig"; https://kexue.fm/archives/7921). E[phi(q) . phi(k)] = exp(q . k) when each row of omega is N(0, I).
/// exp(|x|^2/2) goes to the row's log-scale and never overflows.
///
/// Give it a projection without antithetic rows: cos is even and sin odd, so that omega and -omega make the same
/// contribution twice, and half the features are wasted.
///
/// Relative variance for iid rows, with r = |q - k|: 2 sinh^2(r^2/2) / m', or 4 sinh^2(r^2/2) / m of m = 2 m' features.
/// It vanishes at q = k, where positive features have e^{4|q|^2} / m, and explodes where q and k are far apart, which
/// is where exp(q . k) is small next to exp(|q|^2/2 + |k|^2/2): sums of many small similarities come out of either sign.
/// Attention reports the rows of non-positive normaliser. Use it while |q|^2 + |k|^2 is below about 1.
/// @throws std::invalid_argument  if omega has no rows or no columns
/// Cost: 2 n m' d flops, n m' cosines and n m' sines for n tokens.
template <detail::ComputeScalar S>
class TrigonometricFeatures : public SignedFeatureMapBase<TrigonometricFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;

  explicit TrigonometricFeatures(Projection<S> omega) : fourier_(std::move(omega)) {}

  /// @param omega  any Eigen matrix
  template <class Derived>
  explicit TrigonometricFeatures(const Eigen::MatrixBase<Derived>& omega)
      : TrigonometricFeatures(Projection<S>(omega)) {}

  Index dimension() const { return fourier_.dimension(); }
  Index feature_dimension() const { return fourier_.feature_dimension(); }
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  const Projection<S>& projection() const { return fourier_.projection(); }

  void features(Side side, const ConstMatrixRef<S>& x, Index first, FeatureBlock<S> block) const {
    fourier_.features(side, x, first, block);
    for (Index t = 0; t < x.rows(); ++t) block.log_scale(t) += x.row(t).squaredNorm() / 2;
  }

 private:
  RandomFourierFeatures<S> fourier_;
};

}  // namespace phiattn::inline PHIATTN_ABI
