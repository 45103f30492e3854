#include <phiattn/feature_maps/fourier_pairs.hpp>
#include <phiattn/feature_maps/random_fourier.hpp>
#include <phiattn/feature_maps/spectra.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

namespace {

/// exp(lambda (|q|^2 + |k|^2)) / m' sum_r cos(omega_q,r . q + omega_k,r . k)
oracle::Similarity cosines(const oracle::Matrix& omega_q, const oracle::Matrix& omega_k, Real lambda,
                           bool inverse_sqrt_scale) {
  return {
      [=](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
        const Real squares = lambda * (q.squaredNorm() + k.squaredNorm());
        Real sum = 0;
        Real angle = 0;
        for (Index r = 0; r < omega_q.rows(); ++r) {
          sum += std::cos(omega_q.row(r).dot(q) + omega_k.row(r).dot(k)) / static_cast<Real>(omega_q.rows());
          angle = std::max(angle, omega_q.row(r).norm() * q.norm() + omega_k.row(r).norm() * k.norm());
        }
        return {squares + std::log(std::abs(sum)), sum < 0 ? Real(-1) : Real(1), squares, squares + angle};
      },
      inverse_sqrt_scale};
}

}  // namespace

/// 16 frequencies, or pairs of them.
template <class S>
std::vector<Case<S>> fourier_features() {
  constexpr Index kFrequencies = 16;
  constexpr double kSigma = 1.5;
  constexpr double kLambda = 0.75;
  const auto omega = [](Index d) {
    return phiattn::sample_projection<S>(kFrequencies, d, {.antithetic = false, .seed = kSeed});
  };
  const auto spectrum = [](Index d) {
    return phiattn::sample_gaussian_spectrum<S>(kFrequencies, d, kSigma, {.seed = kSeed});
  };
  const auto pairs = [](Index d) {
    return phiattn::ExponentialPairFeatures<S>(kFrequencies, d, kLambda, kSeed);
  };
  return {case_of(
              "trigonometric features", false,
              [=](Index d) { return phiattn::TrigonometricFeatures<S>(omega(d)); },
              [=](Index d) {
                const oracle::Matrix w = omega(d).matrix().template cast<Real>();
                return cosines(w, -w, 0.5L, true);
              }),
          case_of(
              "random Fourier features", false,
              [=](Index d) { return phiattn::RandomFourierFeatures<S>(spectrum(d)); },
              [=](Index d) {
                const oracle::Matrix w = spectrum(d).matrix().template cast<Real>();
                return cosines(w, -w, 0, false);
              }),
          case_of("exponential pair features", false, pairs, [=](Index d) {
            const auto map = pairs(d);
            return cosines(map.pairs().query.matrix().template cast<Real>(),
                           map.pairs().key.matrix().template cast<Real>(), Real(kLambda), true);
          })};
}

template std::vector<Case<float>> fourier_features();
template std::vector<Case<double>> fourier_features();

}  // namespace laws
