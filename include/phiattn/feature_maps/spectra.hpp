#pragma once

// Frequencies of the shift-invariant kernels.

#include <phiattn/core/check.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// How the frequencies of a spectrum are drawn.
struct SpectrumOptions {
  Directions directions =
      Directions::orthogonal;  ///< not for the Laplace kernel, whose spectrum is no sphere's
  std::uint64_t seed = 0;
};

namespace detail {

inline void check_sigma(double sigma) {
  if (!(sigma > 0) || !std::isfinite(sigma) || !std::isfinite(1 / sigma))
    fail_positive("sigma of a spectrum", sigma);
}

/// Isotropic frequencies without their negatives: cos is even and sin odd, so that a pair of omega and -omega says
/// nothing that omega alone does not.
template <class S>
Projection<S> sample_isotropic(Index m, Index d, const SpectrumOptions& options) {
  return sample_projection<S>(m, d,
                              {.directions = options.directions, .antithetic = false, .seed = options.seed});
}

}  // namespace detail

/// Spectrum of the Gaussian kernel exp(-|q - k|^2 / (2 sigma^2)): omega ~ N(0, I / sigma^2)   (Rahimi & Recht 2007).
///
/// @return (m, d), one frequency a row; a function of the arguments alone, like all spectra here
/// @throws std::invalid_argument  if m or d is less than 1, or if sigma is not positive and finite
template <detail::ComputeScalar S>
Projection<S> sample_gaussian_spectrum(Index m, Index d, double sigma, const SpectrumOptions& options = {}) {
  detail::check_sigma(sigma);
  return detail::sample_isotropic<S>(m, d, options).scaled(static_cast<S>(1 / sigma));
}

/// Spectrum of the Laplace kernel exp(-|q - k|_1 / sigma), a product over the coordinates: each omega_i is Cauchy of
/// scale 1/sigma   (Rahimi & Recht 2007). The kernel exp(-|q - k| / sigma) of the Euclidean distance is Matern's,
/// nu = 1/2, and its spectrum the multivariate Cauchy distribution.
///
/// Frequencies have no mean: some are huge, and their cosines noise in all but the closest pairs.
template <detail::ComputeScalar S>
Projection<S> sample_laplace_spectrum(Index m, Index d, double sigma, std::uint64_t seed = 0) {
  detail::check_at_least("rows of omega (m)", m, 1);
  detail::check_at_least("columns of omega (d)", d, 1);
  detail::check_sigma(sigma);
  const Philox random(seed);
  Matrix<double> omega(m, d);
  for (Index i = 0; i < omega.size(); ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    omega.data()[i] = std::tan(std::numbers::pi * (u - 0.5)) / sigma;
  }
  return Projection<S>(omega.template cast<S>());
}

/// Spectrum of the Matern kernel, for r = |q - k| / sigma:
///
///     nu = 1/2: e^{-r}     nu = 3/2: (1 + sqrt(3) r) e^{-sqrt(3) r}     nu = 5/2: (1 + sqrt(5) r + 5 r^2/3) e^{-sqrt(5) r}
///
/// the multivariate t distribution of 2 nu degrees of freedom (Rasmussen & Williams 2006, eq. 4.15):
///
///     omega = g / (sigma sqrt(c / (2 nu))),   g ~ N(0, I),   c ~ chi^2_{2 nu}
///
/// It tends to the Gaussian spectrum as nu grows.
/// @param nu  a multiple of 1/2: the degrees of freedom are whole
/// @throws std::invalid_argument  also if nu is none, or not between 1/2 and 1000
template <detail::ComputeScalar S>
Projection<S> sample_matern_spectrum(Index m, Index d, double nu, double sigma,
                                     const SpectrumOptions& options = {}) {
  detail::check_sigma(sigma);
  if (!(nu >= 0.5 && nu <= 1000) || 2 * nu != std::floor(2 * nu)) {
    detail::fail_argument("nu of a Matern spectrum: got " + detail::number(nu) +
                          ", expected a multiple of 1/2 from 1/2 to 1000");
  }
  constexpr std::uint64_t kChiSquare = 2;  // 0 and 1 are the streams of sample_projection()
  const Philox random(options.seed, kChiSquare);
  const auto freedom = static_cast<std::uint64_t>(2 * nu);
  Matrix<double> omega = detail::sample_isotropic<double>(m, d, options).matrix();
  for (Index r = 0; r < m; ++r) {
    double chi_square = 0;
    for (std::uint64_t i = 0; i < freedom; ++i) {
      const double normal = random.normal(static_cast<std::uint64_t>(r) * freedom + i);
      chi_square += normal * normal;
    }
    omega.row(r) *= std::sqrt(2 * nu / chi_square) / sigma;
  }
  return Projection<S>(omega.template cast<S>());
}

}  // namespace phiattn::inline PHIATTN_ABI
