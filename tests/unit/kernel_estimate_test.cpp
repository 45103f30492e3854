// What the frequencies are for: mean_i exp(omega_i . (q + k) - (|q|^2 + |k|^2) / 2) estimates exp(q . k).
// Bounds are four standard errors.

#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

/// q and k with |q + k| = z, neither along an axis.
std::pair<Vector<double>, Vector<double>> query_and_key(Index d, double z) {
  Vector<double> q(d), k(d);
  for (Index j = 0; j < d; ++j) {
    q(j) = 0.7 + 0.3 * static_cast<double>(j % 3);
    k(j) = 0.4 - 0.5 * static_cast<double>(j % 2);
  }
  const double factor = z / (q + k).norm();
  return {factor * q, factor * k};
}

/// The estimate over exp(q . k), in many projections of seeds of their own.
Moments kernel_estimates(Index m, Index d, ProjectionOptions options, double z, int draws) {
  const auto [q, k] = query_and_key(d, z);
  std::vector<double> estimates;
  for (int draw = 0; draw < draws; ++draw) {
    options.seed = kSeed + static_cast<std::uint64_t>(draw);
    const Vector<double> products = sample_projection<double>(m, d, options).matrix() * (q + k);
    const double sum = (products.array() - (q.squaredNorm() + k.squaredNorm()) / 2).exp().sum();
    estimates.push_back(sum / static_cast<double>(m) / std::exp(q.dot(k)));
  }
  return Moments(estimates);
}

/// 0F1(; b; x)
double hypergeometric_0f1(double b, double x) {
  double sum = 0;
  double term = 1;
  for (int n = 1; term > 1e-17 * sum; ++n) {
    sum += term;
    term *= x / (n * (b + n - 1));
  }
  return sum;
}

}  // namespace

TEST_CASE("the kernel estimate is unbiased", "[projection]") {
  // m = 10 leaves a partial block at d = 3 and at d = 8.
  for (const Index d : {1, 3, 8}) {
    for (const Directions directions : {Directions::iid, Directions::orthogonal}) {
      for (const Radii radii : {Radii::chi, Radii::stratified}) {
        for (const bool antithetic : {false, true}) {
          CAPTURE(kSeed, d, static_cast<int>(directions), static_cast<int>(radii), antithetic);
          const Moments estimate = kernel_estimates(10, d, {directions, radii, antithetic, 0}, 1.2, 800);
          CHECK(std::abs(estimate.mean - 1) <= 4 * estimate.error);
          CHECK(estimate.error < 0.03);
        }
      }
    }
  }
}

TEST_CASE("deterministic radii bias the kernel estimate by as much as the theory says", "[projection]") {
  constexpr double kZ = 2;
  constexpr Index kRows = 8;
  for (const Index d : {2, 8}) {
    for (const Directions directions : {Directions::iid, Directions::orthogonal}) {
      for (const Radii rule : {Radii::fixed, Radii::quantile, Radii::midpoint}) {
        CAPTURE(kSeed, d, static_cast<int>(directions), static_cast<int>(rule));
        const Vector<double> radii = sample_radii(kRows, d, rule, Philox(0));
        double due = 0;
        for (const double r : radii) {
          due += std::exp(-kZ * kZ / 2) *
                 hypergeometric_0f1(static_cast<double>(d) / 2, r * r * kZ * kZ / 4) / kRows;
        }
        const Moments estimate = kernel_estimates(kRows, d, {directions, rule, false, 0}, kZ, 800);
        CHECK(std::abs(estimate.mean - due) <= 4 * estimate.error);
      }
    }
  }
}

TEST_CASE("orthogonal directions, stratified radii and antithetic rows each lower the variance",
          "[projection]") {
  constexpr Index kD = 8;
  constexpr Index kM = 32;
  constexpr double kZ = 0.5;
  CAPTURE(kSeed);
  const auto moments = [](const ProjectionOptions& options) {
    return kernel_estimates(kM, kD, options, kZ, 800);
  };
  const auto check_lower = [](const Moments& lower, const Moments& higher) {
    const double error = std::hypot(lower.variance_error, higher.variance_error);
    CAPTURE(lower.variance, higher.variance, error);
    CHECK(lower.variance <= higher.variance - 4 * error);
  };
  const Moments iid = moments({Directions::iid, Radii::chi, false, 0});
  const Moments iid_pairs = moments({Directions::iid, Radii::chi, true, 0});
  const Moments orthogonal_pairs = moments({Directions::orthogonal, Radii::chi, true, 0});
  const Moments stratified_pairs = moments({Directions::orthogonal, Radii::stratified, true, 0});
  check_lower(iid_pairs, iid);
  check_lower(orthogonal_pairs, iid_pairs);
  check_lower(stratified_pairs, orthogonal_pairs);
  // With z = |q + k| the relative variance is (e^{z^2} - 1) / m of independent rows, and of pairs of them
  // (cosh(z^2) - 1) / (m / 2).
  CHECK(std::abs(iid.variance - std::expm1(kZ * kZ) / kM) <= 4 * iid.variance_error);
  CHECK(std::abs(iid_pairs.variance - (std::cosh(kZ * kZ) - 1) / (kM / 2)) <= 4 * iid_pairs.variance_error);
}
