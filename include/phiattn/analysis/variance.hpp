#pragma once

// How far random features of exp(q . k) are from it, in closed form.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/projection/favor_plusplus.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// Random feature maps whose error has a closed form, as sample_projection() draws them; m counts features.
enum class RandomFeatures {
  iid,                       ///< positive, independent frequencies
  antithetic,                ///< positive, independent frequencies in pairs +-omega: the hyperbolic features
  orthogonal,                ///< positive, orthogonal blocks of d
  antithetic_orthogonal,     ///< positive, orthogonal blocks of d pairs: the default of the library
  antithetic_fixed,          ///< the same with all |omega| = sqrt(d): biased
  favor_plusplus,            ///< positive, independent, A of least variance for the pair itself
  trigonometric,             ///< independent frequencies, a cosine and a sine of each
  orthogonal_trigonometric,  ///< the same, orthogonal blocks of d
};

/// Of phi(q) . phi(k) / exp(q . k), which ought to be 1 and never varies.
struct RelativeMoments {
  double bias;      ///< mean - 1
  double variance;  ///< +inf where it is beyond double

  /// Root mean square relative error.
  double error() const { return std::sqrt(bias * bias + variance); }
};

namespace detail {

/// ln 0F1(; b; x) for b > 0 and x >= 0, a sum of positive terms. Cost: O(sqrt(x)) terms.
inline double log_hypergeometric_0f1(double b, double x) {
  constexpr double kLarge = 1e250;
  constexpr double kNegligible = 1e-17;
  double sum = 0;  // of the terms after the first, which is 1
  double one = 1;
  double term = 1;
  double log_scale = 0;
  for (double n = 1; n == 1 || term > kNegligible * (one + sum); ++n) {
    term *= x / (n * (b + n - 1));
    sum += term;
    if (sum > kLarge) {
      sum /= kLarge;
      term /= kLarge;
      one /= kLarge;
      log_scale += std::log(kLarge);
    }
  }
  return log_scale == 0 ? std::log1p(sum) : std::log(one + sum) + log_scale;
}

/// Covariance of the estimates that two orthogonal frequencies with independent chi radii make, relative to exp(q . k):
///
///     e^{-x} 1F1(d; d/2; x/2) - 1 = -e^{-x} sum_k x^k / k! (1 - rho_k),   rho_k = (d)_k / (2^k (d/2)_k) <= 1
///
/// with x = z^2 for positive and -r^2 for trigonometric features: |omega_1 + omega_2|^2 has the chi-square distribution
/// of 2d degrees of freedom, and a uniform direction. The leading term is -x^2 / (2 (d + 2)): nothing cancels for x > 0
/// or small x. For x << 0 Kummer's e^{-x/2} 1F1(-d/2; d/2; -x/2) - 1 has an error of eps e^{-x}, that of the variance.
inline double orthogonal_covariance(double x, double d) {
  constexpr double kNegligible = 1e-18;
  constexpr double kOverflow = 700;  // beyond, the variance itself is +inf
  if (std::abs(x) > kOverflow) return 0;
  const bool kummer = x < -1;
  const double argument = kummer ? -x / 2 : x;
  double sum = 0;
  double power = std::exp(kummer ? argument : -x);  // times argument^k / k!
  double rho = 1;                                   // or (-d/2)_k / (d/2)_k
  double largest = 0;
  for (double k = 0; k < 2 || std::abs(power) > kNegligible * largest || k < std::abs(argument); ++k) {
    const double term = kummer ? power * rho : power * (rho - 1);
    sum += term;
    largest = (std::max)(largest, std::abs(term));
    power *= argument / (k + 1);
    rho *= kummer ? (k - d / 2) / (k + d / 2) : (d + k) / (d + 2 * k);
  }
  return kummer ? sum - 1 : sum;
}

/// What one unit contributes: a frequency, or a pair of them, or its cosine and sine.
struct UnitMoments {
  Index features;         // of a unit
  double bias;            // of its estimate, over exp(q . k)
  double variance;        // the same
  double covariance = 0;  // with each unit orthogonal to it
};

inline UnitMoments fixed_radii_moments(double d, double z) {
  const double square = z * z;
  const auto log_mean = [&](double radius_squared) {  // of exp(omega . z), over exp(z^2)
    return log_hypergeometric_0f1(d / 2, radius_squared * square / 4) - square;
  };
  const double bias = std::expm1(log_mean(d) + square / 2);
  const double mean_square = (1 + bias) * (1 + bias);
  return {2, bias, (std::exp(log_mean(4 * d)) + std::exp(-square)) / 2 - mean_square,
          std::exp(log_mean(2 * d)) - mean_square};
}

inline UnitMoments unit_moments(RandomFeatures kind, Index dimension, double z, double r) {
  const auto d = static_cast<double>(dimension);
  const auto cosh_minus_one = [](double x) { return 2 * std::pow(std::sinh(x / 2), 2); };
  switch (kind) {
    case RandomFeatures::iid:
      return {1, 0, std::expm1(z * z)};
    case RandomFeatures::antithetic:
      return {2, 0, cosh_minus_one(z * z)};
    case RandomFeatures::orthogonal:
      return {1, 0, std::expm1(z * z), orthogonal_covariance(z * z, d)};
    case RandomFeatures::antithetic_orthogonal:
      return {2, 0, cosh_minus_one(z * z), orthogonal_covariance(z * z, d)};
    case RandomFeatures::antithetic_fixed:
      return fixed_radii_moments(d, z);
    case RandomFeatures::favor_plusplus: {
      const double a = favor_plusplus_parameter(z * z, dimension);
      return {1, 0, std::expm1(d * std::log1p(-4 * a) - d / 2 * std::log1p(-8 * a) + z * z / (1 - 8 * a))};
    }
    case RandomFeatures::trigonometric:
      return {2, 0, cosh_minus_one(r * r)};
    case RandomFeatures::orthogonal_trigonometric:
      return {2, 0, cosh_minus_one(r * r), orthogonal_covariance(-r * r, d)};
  }
  fail_argument("kind: not one of phiattn::RandomFeatures");
}

/// Of the mean of `units` units, blocks of d of them orthogonal.
inline double variance_of_mean(const UnitMoments& unit, double units, double d) {
  if (!std::isfinite(unit.variance)) return unit.variance;
  const double whole = std::floor(units / d) * d;
  const double rest = units - whole;
  const double partners = (whole * (d - 1) + rest * (rest - 1)) / units;
  return (std::max)(0.0, (unit.variance + (partners == 0 ? 0 : partners * unit.covariance)) / units);
}

}  // namespace detail

/// Bias and variance of m random features of exp(q . k), over exp(q . k), with z = |q + k| and r = |q - k|:
///
///     iid                       (e^{z^2} - 1) / m                             (Choromanski et al. 2021)
///     antithetic                4 sinh^2(z^2/2) / m                           (the same)
///     trigonometric             4 sinh^2(r^2/2) / m                           (the same)
///     favor_plusplus            ((1-4A)^d (1-8A)^{-d/2} e^{z^2/(1-8A)} - 1) / m     (Likhosherstov et al. 2022)
///     orthogonal_...            the same plus p c, divided by the number of units: p the mean number of units that are
///                               orthogonal to one, c the covariance with each; see detail::orthogonal_covariance()
///     antithetic_fixed          the same with the moments of uniform directions, E exp(omega . z) = 0F1(; d/2; R^2 z^2/4)
///
/// A unit is a frequency, a pair +-omega or a cosine and a sine. The weights of attention normalise, and what errors of
/// one query have in common drops out: they are less wrong than this says (see analysis/regime.hpp).
/// @param z, r  of q and k as the similarity sees them: times sqrt(scale)
/// @throws std::invalid_argument  if m or d is less than 1, m is odd where features come in pairs, or z or r is negative
///                                or not finite
/// Cost: O(1), a series for orthogonal and fixed ones. Absolute error of the variance about 1e-14 (1 + variance).
inline RelativeMoments relative_moments(RandomFeatures kind, Index m, Index d, double z, double r) {
  detail::check_at_least("features m", m, 1);
  detail::check_at_least("dimension d", d, 1);
  for (const double norm : {z, r}) {
    if (norm >= 0 && std::isfinite(norm)) continue;
    detail::fail_argument("z or r: got " + detail::number(norm) + ", expected a finite number >= 0");
  }
  const detail::UnitMoments unit = detail::unit_moments(kind, d, z, r);
  if (m % unit.features != 0) {
    detail::fail_argument("features m: got " + std::to_string(m) + ", expected an even number");
  }
  return {unit.bias,
          detail::variance_of_mean(unit, static_cast<double>(m / unit.features), static_cast<double>(d))};
}

/// The bias that given radii bring about, whatever the directions, if each alone is uniform:
///
///     e^{-z^2/2} mean_i 0F1(; d/2; R_i^2 z^2 / 4) - 1
///
/// which no number of projections averages away; see sample_radii() for the rules quantile, midpoint and fixed.
/// @param radii  (m), a row or a column
/// @throws std::invalid_argument  if there are none, d is less than 1, or a number is negative or not finite
/// Cost: O(R z) terms a radius.
template <class Derived>
double radii_bias(const Eigen::DenseBase<Derived>& radii, Index d, double z) {
  detail::check_at_least("number of radii", radii.size(), 1);
  detail::check_at_least("dimension d", d, 1);
  double sum = 0;
  for (Index i = 0; i < radii.size(); ++i) {
    const double product = static_cast<double>(radii.derived()(i)) * z;
    if (!(product >= 0) || !std::isfinite(product)) {
      detail::fail_argument("radius times z: got " + detail::number(product) +
                            ", expected a finite number >= 0");
    }
    sum += std::expm1(detail::log_hypergeometric_0f1(static_cast<double>(d) / 2, product * product / 4) -
                      z * z / 2);
  }
  return sum / static_cast<double>(radii.size());
}

}  // namespace phiattn::inline PHIATTN_ABI
