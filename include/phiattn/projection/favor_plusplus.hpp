#pragma once

// Frequencies stretched and weighted to lower the variance.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// FAVOR++: with these frequencies positive random features are
///
///     phi_i(x) = (1 - 4A)^(d/4) exp(A |omega_i|^2 + sqrt(1 - 4A) omega_i . x - |x|^2 / 2) / sqrt(m)
///
/// (Likhosherstov et al. 2022, "Chefs' random tables"), unbiased for every A <= 0 where `omega` is. It is the
/// projection of frequencies sqrt(1 - 4A) omega_i and log-weights 2A |omega_i|^2 + (d/2) ln(1 - 4A), added to
/// those of `omega`. A = 0 changes nothing; favor_plusplus_parameter() gives the best A, that of fitting/favor_plusplus.hpp for
/// given data.
/// @param a  A
/// @throws std::invalid_argument  if A is positive or not finite
/// Cost: O(m d).
template <detail::ComputeScalar S>
Projection<S> favor_plusplus(const Projection<S>& omega, double a) {
  if (!(a <= 0) || !std::isfinite(a)) {
    detail::fail_argument("A of FAVOR++: got " + detail::number(a) + ", expected a finite number <= 0");
  }
  const double stretch = 1 - 4 * a;
  const auto squares = omega.matrix().template cast<double>().rowwise().squaredNorm().eval();
  const Vector<double> log_weights =
      (2 * a * squares).array() + static_cast<double>(omega.cols()) / 2 * std::log(stretch);
  return omega.scaled(static_cast<S>(std::sqrt(stretch))).weighted(log_weights.template cast<S>());
}

/// The A of least variance where |q + k|^2 is phi, for independent frequencies:
///
///     A = (1 - 1/rho) / 8,   rho = 2d / (sqrt((2 phi + d)^2 + 8 d phi) + 2 phi + d)
///
/// (Likhosherstov et al. 2022; rho written without cancellation).
inline double favor_plusplus_parameter(double phi, Index dimension) {
  const auto d = static_cast<double>(dimension);
  const double sum = 2 * phi + d;
  const double rho = 2 * d / (std::sqrt(sum * sum + 8 * d * phi) + sum);
  return (1 - 1 / rho) / 8;
}

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template Projection<float> favor_plusplus<float>(const Projection<float>&, double);
extern template Projection<double> favor_plusplus<double>(const Projection<double>&, double);
}  // namespace phiattn::inline PHIATTN_ABI
#endif
