// Features of cosines: their formulas, and that they estimate the kernels they are for, within four standard errors.
#include <phiattn/feature_maps/fourier_pairs.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/random_fourier.hpp>
#include <phiattn/feature_maps/spectra.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;
constexpr int kDraws = 1000;

RowVector<double> query(Index d, double norm) {
  return norm * RowVector<double>::LinSpaced(d, 1, 2).normalized();
}
RowVector<double> key(Index d, double norm) {
  return norm * RowVector<double>::LinSpaced(d, 1.5, -0.7).normalized();
}

template <class Map>
double estimate(const Map& map, const RowVector<double>& q, const RowVector<double>& k) {
  return map.query_features(q).row(0).dot(map.key_features(k).row(0));
}

/// Of phi(q) . phi(k) over many maps, make(seed).
template <class Make>
Moments estimates(const Make& make, const RowVector<double>& q, const RowVector<double>& k,
                  int draws = kDraws) {
  std::vector<double> sample;
  for (int draw = 0; draw < draws; ++draw) {
    sample.push_back(estimate(make(kSeed + static_cast<std::uint64_t>(draw)), q, k));
  }
  return Moments(sample);
}

ProjectionOptions iid(std::uint64_t seed) {
  return {.directions = Directions::iid, .antithetic = false, .seed = seed};
}

/// A kernel of q - k and its spectrum.
struct ShiftInvariant {
  std::string name;
  std::function<double(const RowVector<double>& difference)> kernel;
  std::function<Projection<double>(Index m, Index d, const SpectrumOptions& options)> spectrum;
};

const std::vector<ShiftInvariant>& shift_invariant() {
  constexpr double kSigma = 1.3;
  const auto matern = [](double nu, auto of_distance) {
    return ShiftInvariant{"Matern " + std::to_string(nu),
                          [=](const RowVector<double>& x) { return of_distance(x.norm() / kSigma); },
                          [=](Index m, Index d, const SpectrumOptions& options) {
                            return sample_matern_spectrum<double>(m, d, nu, kSigma, options);
                          }};
  };
  static const std::vector<ShiftInvariant> all{
      {"Gaussian",
       [](const RowVector<double>& x) { return std::exp(-x.squaredNorm() / (2 * kSigma * kSigma)); },
       [](Index m, Index d, const SpectrumOptions& options) {
         return sample_gaussian_spectrum<double>(m, d, kSigma, options);
       }},
      {"Laplace", [](const RowVector<double>& x) { return std::exp(-x.cwiseAbs().sum() / kSigma); },
       [](Index m, Index d, const SpectrumOptions& options) {
         return sample_laplace_spectrum<double>(m, d, kSigma, options.seed);
       }},
      matern(0.5, [](double r) { return std::exp(-r); }),
      matern(1.5, [](double r) { return (1 + std::sqrt(3.0) * r) * std::exp(-std::sqrt(3.0) * r); }),
      matern(2.5, [](double r) {
        return (1 + std::sqrt(5.0) * r + 5 * r * r / 3) * std::exp(-std::sqrt(5.0) * r);
      })};
  return all;
}

}  // namespace

TEST_CASE("random Fourier features are cosines and sines over sqrt(m')", "[feature_maps]") {
  const Matrix<double> omega = sample_projection<double>(5, 3, iid(kSeed)).matrix();
  const Vector<double> log_weights = Vector<double>::LinSpaced(5, -1, 2);
  const RowVector<double> x = query(3, 1.7);
  const Matrix<double> phi =
      RandomFourierFeatures<double>(Projection<double>(omega, log_weights)).query_features(x);
  const Matrix<double> trigonometric =
      TrigonometricFeatures<double>(Projection<double>(omega)).key_features(x);
  REQUIRE(phi.cols() == 10);
  for (Index r = 0; r < 5; ++r) {
    const double angle = omega.row(r).dot(x);
    const double amplitude = std::exp(log_weights(r) / 2) / std::sqrt(5.0);
    CHECK(phi(0, r) == Approx(amplitude * std::cos(angle)).margin(1e-14));
    CHECK(phi(0, 5 + r) == Approx(amplitude * std::sin(angle)).margin(1e-14));
    const double size = std::exp(1.7 * 1.7 / 2) / std::sqrt(5.0);
    CHECK(trigonometric(0, r) == Approx(size * std::cos(angle)).margin(1e-13));
    CHECK(trigonometric(0, 5 + r) == Approx(size * std::sin(angle)).margin(1e-13));
  }
}

TEST_CASE("trigonometric features estimate exp(q . k), with relative variance 2 sinh^2(|q - k|^2 / 2) / m'",
          "[feature_maps]") {
  constexpr Index kFrequencies = 16;
  for (const Index d : {1, 3, 8}) {
    for (const double norm : {0.4, 0.8, 1.1}) {
      const RowVector<double> q = query(d, norm), k = key(d, norm);
      const double kernel = std::exp(q.dot(k));
      const auto iid_map = [=](std::uint64_t seed) {
        return TrigonometricFeatures<double>(sample_projection<double>(kFrequencies, d, iid(seed)));
      };
      const auto orthogonal_map = [=](std::uint64_t seed) {
        return TrigonometricFeatures<double>(
            sample_projection<double>(kFrequencies, d, {.antithetic = false, .seed = seed}));
      };
      const double due =
          2 * std::pow(std::sinh((q - k).squaredNorm() / 2), 2) / kFrequencies * kernel * kernel;
      const Moments of_iid = estimates(iid_map, q, k), of_orthogonal = estimates(orthogonal_map, q, k);
      CAPTURE(kSeed, d, norm, kernel, of_iid.mean, of_iid.variance, due);
      // The sum has the known variance, plus rounding where it is 0 (q = k in one dimension).
      CHECK(std::abs(of_iid.mean - kernel) <= 4 * std::sqrt(due / kDraws) + 1e-14);
      CHECK(std::abs(of_iid.variance - due) <= 4 * of_iid.variance_error + 1e-14);
      CHECK(std::abs(of_orthogonal.mean - kernel) <= 4 * of_orthogonal.error + 1e-14);
    }
  }
}

TEST_CASE("a frequency and its negative say the same to trigonometric features", "[feature_maps]") {
  const RowVector<double> q = query(3, 1), k = key(3, 1.2);
  const Projection<double> pairs = sample_projection<double>(8, 3, {.seed = kSeed});
  const Projection<double> half(pairs.matrix().topRows(4));
  CHECK(estimate(TrigonometricFeatures<double>(pairs), q, k) ==
        Approx(estimate(TrigonometricFeatures<double>(half), q, k)).epsilon(1e-13));
}

TEST_CASE("random Fourier features estimate the kernel of their spectrum, with the variance of its cosines",
          "[feature_maps]") {
  constexpr Index kFrequencies = 8;
  for (const auto& [name, kernel, spectrum] : shift_invariant()) {
    for (const Index d : {1, 2, 6}) {
      for (const double norm : {0.3, 1.0, 3.0}) {
        const RowVector<double> q = query(d, norm), k = key(d, 0.6 * norm);
        const double sim = kernel(q - k);
        const double due = ((1 + kernel(2 * (q - k))) / 2 - sim * sim) / kFrequencies;
        for (const Directions directions : {Directions::iid, Directions::orthogonal}) {
          const Moments came = estimates(
              [&, &draw = spectrum](std::uint64_t seed) {
                return RandomFourierFeatures<double>(
                    draw(kFrequencies, d, {.directions = directions, .seed = seed}));
              },
              q, k, 600);
          CAPTURE(name, kSeed, d, norm, static_cast<int>(directions), sim, came.mean, came.error,
                  came.variance, due);
          CHECK(std::abs(came.mean - sim) <= 4 * came.error);
          if (directions == Directions::iid) CHECK(std::abs(came.variance - due) <= 4 * came.variance_error);
        }
      }
    }
  }
}

TEST_CASE("a spectrum is a function of its arguments, and refuses others", "[feature_maps]") {
  for (const auto& [name, kernel, spectrum] : shift_invariant()) {
    CAPTURE(name);
    CHECK(spectrum(5, 3, {.seed = 1}).matrix() == spectrum(5, 3, {.seed = 1}).matrix());
    CHECK(spectrum(5, 3, {.seed = 1}).matrix() != spectrum(5, 3, {.seed = 2}).matrix());
    CHECK_THROWS_AS(spectrum(0, 3, {}), std::invalid_argument);
    CHECK_THROWS_AS(spectrum(5, 0, {}), std::invalid_argument);
  }
  for (const double sigma : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK_THROWS_AS(sample_gaussian_spectrum<float>(5, 3, sigma), std::invalid_argument);
    CHECK_THROWS_AS(sample_laplace_spectrum<float>(5, 3, sigma), std::invalid_argument);
    CHECK_THROWS_AS(sample_matern_spectrum<float>(5, 3, 0.5, sigma), std::invalid_argument);
  }
  for (const double nu : {0.0, 0.7, -0.5, 1e6, std::nan("")}) {
    CHECK_THROWS_AS(sample_matern_spectrum<float>(5, 3, nu, 1), std::invalid_argument);
  }
}

TEST_CASE("exponential pairs estimate exp(q . k), with relative variance 2 sinh^2(tau^2 / 2) / m'",
          "[feature_maps]") {
  constexpr Index kPairs = 16;
  constexpr Index kD = 4;
  for (const double lambda : {0.5, 0.6, 1.0}) {
    for (const double norm : {0.3, 0.7}) {
      const RowVector<double> q = query(kD, norm), k = key(kD, norm);
      const double kernel = std::exp(q.dot(k));
      const double tau_squared =
          (q - k).squaredNorm() + (2 * lambda - 1) * (q.squaredNorm() + k.squaredNorm());
      const double due = 2 * std::pow(std::sinh(tau_squared / 2), 2) / kPairs * kernel * kernel;
      const auto map = [=](Directions directions) {
        return [=](std::uint64_t seed) {
          return ExponentialPairFeatures<double>(kPairs, kD, lambda, seed, directions);
        };
      };
      const Moments of_iid = estimates(map(Directions::iid), q, k);
      const Moments of_orthogonal = estimates(map(Directions::orthogonal), q, k);
      CAPTURE(kSeed, lambda, norm, kernel, of_iid.mean, of_iid.variance, due);
      CHECK(std::abs(of_iid.mean - kernel) <= 4 * std::sqrt(due / kDraws));
      CHECK(std::abs(of_iid.variance - due) <= 4 * of_iid.variance_error);
      CHECK(std::abs(of_orthogonal.mean - kernel) <= 4 * of_orthogonal.error);
    }
  }
}

TEST_CASE("exponential pairs of lambda = 1/2 are trigonometric features", "[feature_maps]") {
  const ExponentialPairFeatures<double> map(6, 4, 0.5, kSeed);
  CHECK(map.pairs().key.matrix() == -map.pairs().query.matrix());
  const RowVector<double> q = query(4, 1.1), k = key(4, 0.8);
  CHECK(estimate(map, q, k) ==
        Approx(estimate(TrigonometricFeatures<double>(map.pairs().query), q, k)).epsilon(1e-12));
}

TEST_CASE(
    "two frequencies instead of one cost variance: exponential pairs against positive features of equal "
    "number",
    "[feature_maps]") {
  constexpr Index kFeatures = 32;
  constexpr Index kD = 4;
  for (const double cosine : {-0.5, 0.0, 0.2}) {  // the other way round above 1/2, for lambda = 1
    RowVector<double> q = RowVector<double>::Zero(kD), k = q;
    q(0) = 1;
    k(0) = cosine;
    k(1) = std::sqrt(1 - cosine * cosine);
    const Moments pairs = estimates(
        [](std::uint64_t seed) {
          return ExponentialPairFeatures<double>(kFeatures / 2, kD, 1, seed, Directions::iid);
        },
        q, k);
    const Moments positive = estimates(
        [](std::uint64_t seed) {
          return PositiveRandomFeatures<double>(sample_projection<double>(kFeatures, kD, iid(seed)));
        },
        q, k);
    CAPTURE(kSeed, cosine, pairs.variance, positive.variance);
    CHECK(pairs.variance - positive.variance >=
          4 * std::hypot(pairs.variance_error, positive.variance_error));
  }
}

TEST_CASE("Fourier pairs take complex weights: they multiply, and shift the phase of the query",
          "[feature_maps]") {
  // cos(q + 2 k + 0.3) and 0.5 cos(3 q - k - 1.2), in one dimension, with beta = e^{-|x|} and gamma = 2.
  using Complex = std::complex<double>;
  const Projection<double> omega_q(Vector<double>{{1.0, 3.0}}), omega_k(Vector<double>{{2.0, -1.0}});
  FourierPairs<double> pairs{omega_q,
                             omega_k,
                             [](const auto& x) { return -x.norm(); },
                             [](const auto&) { return std::numbers::ln2; },
                             {}};
  pairs.weights.resize(2);
  pairs.weights << std::polar(1.0, 0.3), std::polar(0.5, -1.2);
  const FourierPairFeatures<double> map(pairs);
  CHECK(map.dimension() == 1);
  CHECK(map.feature_dimension() == 4);
  for (const double q : {-1.3, 0.2, 2.0}) {
    for (const double k : {-0.4, 1.5}) {
      const double sim =
          (std::cos(q + 2 * k + 0.3) + 0.5 * std::cos(3 * q - k - 1.2)) / 2 * std::exp(std::abs(q)) / 2;
      CHECK(estimate(map, RowVector<double>::Constant(1, q), RowVector<double>::Constant(1, k)) ==
            Approx(sim).margin(1e-13));
    }
  }
  pairs.weights = Vector<Complex>::Ones(3);
  CHECK_THROWS_AS(FourierPairFeatures<double>(pairs), std::invalid_argument);
  pairs.weights.resize(0);
  pairs.log_gamma = nullptr;
  CHECK_THROWS_AS(FourierPairFeatures<double>(pairs), std::invalid_argument);
  CHECK_THROWS_AS(ExponentialPairFeatures<double>(4, 3, 0.49), std::invalid_argument);
  CHECK_THROWS_AS(ExponentialPairFeatures<double>(4, 0, 1), std::invalid_argument);
}
