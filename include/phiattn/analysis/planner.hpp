#pragma once

// How many features each map of exp(q . k) needs.

#include <phiattn/analysis/variance.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// The pairs a plan is for. Norms are those of q and k as the similarity sees them: times sqrt(scale).
struct PlanOptions {
  double query_norm;
  double key_norm;
  Index d;
  double
      tolerance;  ///< of phi(q) . phi(k) / exp(q . k) - 1: root mean square (random maps), largest (others)
  double largest_cosine =
      1;  ///< |cos(q, k)| of all pairs; 1 covers all, 2/sqrt(d) 95 % of pairs of random directions
};

/// One map and its number of features. None: it does not fit, because its bias alone is beyond the tolerance or it took
/// more than kMaxFeatureDimension features.
struct FeaturePlan {
  const char* map;
  std::optional<Index> features;
};

/// |T_n(x) e^{-x} - 1|, the relative error of the Taylor polynomial of degree n. It grows with |x| on either side.
inline double taylor_error(Index n, double x) {
  detail::check_at_least("degree n", n, 0);
  // What is left out, sum_{m > n} x^m/m! e^{-x}, does not cancel against what is kept.
  const double log_first =
      static_cast<double>(n + 1) * std::log(std::abs(x)) - std::lgamma(static_cast<double>(n) + 2) - x;
  double sum = 0;
  double term = 1;
  for (double m = static_cast<double>(n) + 2; std::abs(term) > 1e-17 * std::abs(sum); ++m) {
    sum += term;
    term *= x / m;
  }
  return x == 0 ? 0 : std::exp(log_first) * std::abs(sum);
}

/// |(1 + x/n)^n e^{-x} - 1|, the relative error of the exponential limit.
inline double exponential_limit_error(Index n, double x) {
  detail::check_at_least("degree n", n, 1);
  const auto degree = static_cast<double>(n);
  if (x > -degree) return std::abs(std::expm1(degree * std::log1p(x / degree) - x));
  const double size = std::exp(degree * std::log(std::abs(1 + x / degree)) - x);
  return n % 2 == 0 ? std::abs(size - 1) : size + 1;
}

namespace detail {

/// The least number of features, up to one block of d units or else in whole blocks.
inline std::optional<Index> features_within(const UnitMoments& unit, double d, double tolerance) {
  const double budget = tolerance * tolerance - unit.bias * unit.bias;
  if (!(budget > 0) || !std::isfinite(unit.variance)) return std::nullopt;
  // One block of h units has the variance (w - c)/h + c, several have that of a whole one divided by their number.
  const double w = unit.variance;
  const double c = unit.covariance;
  double units = (std::max)(1.0, std::ceil((w - c) / (budget - c)));
  if (c != 0 && units > d) units = d * std::ceil((w + (d - 1) * c) / d / budget);
  const double features = units * static_cast<double>(unit.features);
  if (!(features <= static_cast<double>(kMaxFeatureDimension))) return std::nullopt;
  return static_cast<Index>(features);
}

/// C(d + n, n) for the least degree n whose error is within the tolerance for all |x| <= largest.
template <class Error>
std::optional<Index> monomials_within(Index first_degree, double d, double largest, double tolerance,
                                      const Error& error) {
  double monomials = 1;
  for (Index n = 0; monomials <= static_cast<double>(kMaxFeatureDimension); ++n) {
    if (n > 0) monomials *= (d + static_cast<double>(n)) / static_cast<double>(n);
    if (monomials > static_cast<double>(kMaxFeatureDimension)) break;
    if (n >= first_degree && (std::max)(error(n, -largest), error(n, largest)) <= tolerance)
      return static_cast<Index>(std::llround(monomials));
  }
  return std::nullopt;
}

}  // namespace detail

/// The features that each map needs for pairs like these, in the order of RandomFeatures, then Taylor and exponential
/// limit. The worst pair decides: positive features have z^2 = |q|^2 + |k|^2 + 2 c |q| |k|, trigonometric ones r^2 the
/// same, polynomials |q . k| up to c |q| |k|, with c the largest cosine.
///
/// These are numbers for the similarity. Weights of attention need fewer, because errors that the keys of a query share
/// drop out; analysis/regime.hpp has them for given data.
/// @throws std::invalid_argument  if a norm is negative or not finite, d < 1, the tolerance is not in (0, 1) or the
///                                largest cosine not in [0, 1]
/// Cost: O(1) series.
inline std::vector<FeaturePlan> plan_features(const PlanOptions& options) {
  detail::check_at_least("dimension d", options.d, 1);
  for (const double norm : {options.query_norm, options.key_norm}) {
    if (norm >= 0 && std::isfinite(norm)) continue;
    detail::fail_argument("norm: got " + detail::number(norm) + ", expected a finite number >= 0");
  }
  if (!(options.tolerance > 0 && options.tolerance < 1)) {
    detail::fail_argument("tolerance: got " + detail::number(options.tolerance) +
                          ", expected a number in (0, 1)");
  }
  if (!(options.largest_cosine >= 0 && options.largest_cosine <= 1)) {
    detail::fail_argument("largest_cosine: got " + detail::number(options.largest_cosine) +
                          ", expected a number in [0, 1]");
  }
  const auto d = static_cast<double>(options.d);
  const double largest = options.largest_cosine * options.query_norm * options.key_norm;
  const double z =
      std::sqrt(options.query_norm * options.query_norm + options.key_norm * options.key_norm + 2 * largest);
  std::vector<FeaturePlan> plan;
  for (const auto& [kind, name] : {std::pair(RandomFeatures::iid, "iid"),
                                   {RandomFeatures::antithetic, "antithetic"},
                                   {RandomFeatures::orthogonal, "orthogonal"},
                                   {RandomFeatures::antithetic_orthogonal, "antithetic orthogonal"},
                                   {RandomFeatures::antithetic_fixed, "antithetic orthogonal, fixed radii"},
                                   {RandomFeatures::favor_plusplus, "FAVOR++"},
                                   {RandomFeatures::trigonometric, "trigonometric"},
                                   {RandomFeatures::orthogonal_trigonometric, "orthogonal trigonometric"}}) {
    plan.push_back(
        {name, detail::features_within(detail::unit_moments(kind, options.d, z, z), d, options.tolerance)});
  }
  plan.push_back({"Taylor", detail::monomials_within(0, d, largest, options.tolerance, taylor_error)});
  plan.push_back({"exponential limit",
                  detail::monomials_within(1, d, largest, options.tolerance, exponential_limit_error)});
  return plan;
}

}  // namespace phiattn::inline PHIATTN_ABI
