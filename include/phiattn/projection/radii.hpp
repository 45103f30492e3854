#pragma once

// The norms of the frequencies.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/projection/chi_quantile.hpp>

#include <cmath>
#include <cstdint>

namespace phiattn::inline PHIATTN_ABI {

/// How the radii R_1 ... R_h of h frequencies are chosen. U_i are independent uniforms, P_d the chi
/// distribution.
enum class Radii {
  chi,         ///< P_d(r <= R_i) = U_i: independent draws, unbiased
  fixed,       ///< R_i = sqrt(d), the root mean square: the regularised features of Choromanski et al. (2021)
  quantile,    ///< P_d(r <= R_i) = i / (h + 1)            (https://kexue.fm/archives/7921)
  midpoint,    ///< P_d(r <= R_i) = (i - 1/2) / h
  stratified,  ///< P_d(r <= R_i) = (i - U_i) / h: one draw from each h-th of the distribution, unbiased
};

/// The radii of h frequencies in d dimensions, (h).
///
/// All rules but chi ascend, so that with more frequencies than dimensions neighbouring quantiles share an
/// orthogonal block. fixed, quantile and midpoint make no use of `random`; they bias the kernel,
///
///     E[mean_i exp(omega_i . z)] = mean_i 0F1(; d/2; R_i^2 |z|^2 / 4)   instead of exp(|z|^2 / 2)
///
/// for uniform directions, which a mean over many projections does not remove.
/// @throws std::invalid_argument  if h or d is less than 1
/// Cost: O(h sqrt(d)).
template <detail::ComputeScalar S = double>
Vector<S> sample_radii(Index h, Index d, Radii rule, const Philox& random) {
  detail::check_at_least("number of radii", h, 1);
  detail::check_at_least("dimension of the radii", d, 1);
  if (rule == Radii::fixed) return Vector<S>::Constant(h, static_cast<S>(std::sqrt(static_cast<double>(d))));

  const detail::ChiDistribution chi(d);
  const auto rows = static_cast<double>(h);
  // P_d(r <= R) = below / (below + above)
  const auto radius = [&chi](double below, double above) {
    return static_cast<S>(chi.quantile(below / (below + above), above / (below + above)));
  };
  Vector<S> radii(h);
  for (Index row = 0; row < h; ++row) {
    const double u = random.uniform(static_cast<std::uint64_t>(row));
    const auto i = static_cast<double>(row + 1);
    switch (rule) {
      case Radii::chi:
        radii(row) = radius(u, 1 - u);
        break;
      case Radii::quantile:
        radii(row) = radius(i, rows + 1 - i);
        break;
      case Radii::midpoint:
        radii(row) = radius(i - 0.5, rows - i + 0.5);
        break;
      case Radii::stratified:
        radii(row) = radius(i - u, rows - i + u);
        break;
      default:
        detail::fail_argument("radii: not one of the rules of phiattn::Radii");
    }
  }
  return radii;
}

}  // namespace phiattn::inline PHIATTN_ABI
