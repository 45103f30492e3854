#pragma once

// Frequencies stretched and weighted to lower the variance. Next: projection/importance.hpp.

#include <phiattn/core/calibration.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/projection/projection.hpp>
#include <phiattn/similarity.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace phiattn {

/// FAVOR++: with these frequencies positive random features are
///
///     phi_i(x) = (1 - 4A)^(d/4) exp(A |omega_i|^2 + sqrt(1 - 4A) omega_i . x - |x|^2 / 2) / sqrt(m)
///
/// (Likhosherstov et al. 2022, "Chefs' random tables"), unbiased for every A <= 0 where `omega` is. It is the
/// projection of frequencies sqrt(1 - 4A) omega_i and log-weights 2A |omega_i|^2 + (d/2) ln(1 - 4A), added to
/// those of `omega`. A = 0 changes nothing; favor_plusplus_parameter() gives the best A for given data.
/// @param a  A
/// @throws std::invalid_argument  if A is positive or not finite
/// Cost: O(m d).
template <detail::ComputeScalar S>
Projection<S> favor_plusplus(const Projection<S>& omega, double a) {
  if (!(a <= 0) || !std::isfinite(a)) {
    detail::fail_argument("A of FAVOR++: got " + std::to_string(a) + ", expected a finite number <= 0");
  }
  const double stretch = 1 - 4 * a;
  const Vector<double> squares = omega.matrix().template cast<double>().rowwise().squaredNorm();
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

/// The A for given data: phi is the mean of |q_i + k_j|^2 over all pairs. No pair is formed:
/// phi = mean |q|^2 + mean |k|^2 + 2 mean q . mean k.
///
/// Constants fitted to data carry it: for causal use, take other data than the sequence itself, or its future
/// leaks.
/// @param q, k   (n_q, d) and (n_k, d)
/// @param scale  that of the attention to come; default 1/sqrt(d)
/// @throws std::invalid_argument  if q or k is empty, if they differ in d, or on a scale that is out of range
/// Cost: O((n_q + n_k) d).
inline double favor_plusplus_parameter(const Input<double>& q, const Input<double>& k,
                                       std::optional<double> scale = std::nullopt) {
  const detail::CalibrationData data(q, k, scale.value_or(inverse_sqrt_scale(q.cols())));
  const double phi = data.q.rowwise().squaredNorm().mean() + data.k.rowwise().squaredNorm().mean() +
                     2 * data.q.colwise().mean().dot(data.k.colwise().mean());
  return favor_plusplus_parameter(phi, q.cols());
}

}  // namespace phiattn
