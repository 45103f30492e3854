#pragma once

// How long a Gaussian vector is: the distribution of its radius, and the inverse.

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The chi distribution: the radius r = |omega| of omega ~ N(0, I) in d >= 1 dimensions,
///
///     P_d(r <= R) = int_0^R t^(d-1) e^(-t^2/2) dt / int_0^inf t^(d-1) e^(-t^2/2) dt
///
/// (https://kexue.fm/archives/7921), which is the regularised incomplete gamma function of (d/2, R^2/2).
/// Because d is whole, both tails are sums of positive terms and need no more than the density w(R) of ln r.
class ChiDistribution {
 public:
  /// P_d(r <= R), P_d(r > R) and w(R) = d P_d / d ln R, at one R.
  struct Point {
    double lower;
    double upper;
    double density;
  };

  explicit ChiDistribution(Index d)
      : d_(static_cast<double>(d)), odd_(d % 2 == 1), peak_(density_at_peak(d)) {}

  /// The smaller of the two tails has a relative error of the order of sqrt(d) roundings, however small it
  /// is. Integration by parts, once upwards and once downwards in d:
  ///
  ///     P_d(r <= R) = w / d   (1 + R^2/(d+2) + R^4/((d+2)(d+4)) + ...)
  ///     P_d(r >  R) = w / R^2 (1 + (d-2)/R^2 + (d-2)(d-4)/R^4 + ...)
  ///
  /// The second ends: for even d at the factor 2; for odd d at the factor 3, where erfc(R/sqrt(2)) is left
  /// over. Cost: O(sqrt(d)) terms where either tail is near a half, fewer further out.
  Point at(double r) const {
    const double square = r * r;
    // w peaks at R = sqrt(d); with the ratio rounded once, the rounding error drops out to first order.
    const double ratio = square / d_;
    const double density = peak_ * std::exp(d_ / 2 * (std::log(ratio) + 1 - ratio));
    if (square < d_) {
      double sum = 0;
      double term = density / d_;
      for (double k = d_ + 2; term > kEpsilon * sum; k += 2) {
        sum += term;
        term *= square / k;
      }
      return {sum, 1 - sum, density};
    }
    double sum = odd_ ? std::erfc(r / std::numbers::sqrt2) : 0;
    double term = density / square;
    for (double k = d_ - 2; k >= 0 && term > kEpsilon * sum; k -= 2) {
      sum += term;
      term *= k / square;
    }
    return {1 - sum, sum, density};
  }

  /// R with P_d(r <= R) = p and P_d(r > R) = q, for p and q >= 1e-100 with p + q = 1: both are asked for, so
  /// that nothing cancels in either tail. Relative error below 1e-14 for d <= 1024.
  ///
  /// Newton's method on ln P over ln R if p is the smaller, on ln Q over R if q is. Both functions are
  /// concave, because the densities are log-concave: after the first step the iterates approach R from one
  /// side and cannot overshoot.
  double quantile(double p, double q) const {
    double r = start(p, q);
    for (int step = 0; step < kMaxSteps; ++step) {
      const Point point = at(r);
      const double move = p <= q ? std::log(p / point.lower) * point.lower / point.density
                                 : std::log(point.upper / q) * point.upper / point.density;
      r *= p <= q ? std::exp(move) : 1 + move;
      if (std::abs(move) <= kSettled) break;
    }
    return r;
  }

 private:
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 4;
  static constexpr double kSettled = 1e-9;  // the error after a step is of the order of its square
  static constexpr int kMaxSteps = 64;      // five suffice

  /// w(sqrt(d)) = 2 a^a e^-a / Gamma(a), a = d/2.
  static double density_at_peak(Index d) {
    const double a = static_cast<double>(d) / 2;
    if (d < 32) {
      double gamma = d % 2 == 0 ? 1 : std::sqrt(std::numbers::pi);
      for (double factor = d % 2 == 0 ? 1 : 0.5; factor < a; ++factor) gamma *= factor;
      return 2 * std::pow(a, a) * std::exp(-a) / gamma;
    }
    // Stirling's series; its next term is below 2e-16.
    const double x = 1 / (a * a);
    const double series = (1.0 / 12 - x * (1.0 / 360 - x * (1.0 / 1260 - x * (1.0 / 1680 - x / 1188)))) / a;
    return std::sqrt(2 * a / std::numbers::pi) * std::exp(-series);
  }

  /// The cube root of r^2/d is close to normal (Wilson and Hilferty 1931), with the normal quantile to 4.5e-4
  /// (Abramowitz and Stegun 26.2.23). Far down, where that fails, e^(-t^2/2) <= 1 gives a lower bound close
  /// to R.
  double start(double p, double q) const {
    const double t = std::sqrt(-2 * std::log((std::min)(p, q)));
    const double above =
        t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    const double variance = 2 / (9 * d_);
    const double cube_root = 1 - variance + (p <= q ? -above : above) * std::sqrt(variance);
    const double wilson_hilferty = std::sqrt(d_) * std::pow((std::max)(cube_root, 0.0), 1.5);
    const double lower_bound = std::sqrt(d_ / std::numbers::e) * std::pow(p * d_ / peak_, 1 / d_);
    return (std::max)(wilson_hilferty, lower_bound);
  }

  double d_;
  bool odd_;
  double peak_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
