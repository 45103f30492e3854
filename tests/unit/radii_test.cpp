// The radii: their quantiles against stored values and against quadrature, their rules against the
// definitions.

#include <phiattn/projection/radii.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/json.hpp"

using phiattn::Index;
using phiattn::Philox;
using phiattn::Radii;
using phiattn::Vector;
using phiattn::detail::ChiDistribution;

namespace {

constexpr std::uint64_t kSeed = 2021;

double worst_relative_error(const Vector<double>& came, const Vector<double>& due) {
  REQUIRE(came.size() == due.size());
  return ((came - due).array() / due.array()).abs().maxCoeff();
}

/// By quadrature, straight from the definition: with t = e^u the tails are integrals of w(u) = exp(d u -
/// e^{2u} / 2) to both sides of ln R, and the whole is the sum of the tails at its peak.
class Quadrature {
 public:
  explicit Quadrature(Index d)
      : d_(static_cast<long double>(d)), peak_(std::log(d_) / 2), whole_(tail(peak_, -1) + tail(peak_, 1)) {}

  /// How far R is from the quantile, relative to R: (P - p) / (dP / d ln R), by the smaller tail.
  double error(double r, double p, double q) const {
    const long double u = std::log(static_cast<long double>(r));
    const long double whole = whole_ * std::exp(log_density(peak_) - log_density(u));
    return static_cast<double>(p < q ? tail(u, -1) - p * whole : q * whole - tail(u, 1));
  }

 private:
  /// int_0^inf w(u +- s) ds / w(u), by the double exponential rule s = exp(t - exp(-t)).
  long double tail(long double u, int side) const {
    const long double scale = 1 / std::sqrt(d_);
    long double sum = 0;
    for (long double t = -5; t < 7; t += kStep) {
      const long double s = scale * std::exp(t - std::exp(-t));
      const long double v = u + static_cast<long double>(side) * s;
      sum += std::exp(log_density(v) - log_density(u)) * s * (1 + std::exp(-t));
    }
    return sum * kStep;
  }

  long double log_density(long double u) const { return d_ * u - std::exp(2 * u) / 2; }

  static constexpr long double kStep = 1.0L / 64;
  long double d_;
  long double peak_;
  long double whole_;
};

struct Level {
  double p, q;
};

std::vector<Level> levels() {
  std::vector<Level> all;
  for (const double p : {1e-12, 1e-6, 1e-3, 0.1, 0.3}) {
    all.push_back({p, 1 - p});
    all.push_back({1 - p, p});
  }
  all.push_back({0.5, 0.5});
  return all;
}

}  // namespace

TEST_CASE("quantile and midpoint radii match the stored ones", "[radii][golden]") {
  const auto json = golden::load("quantile_radii.json");
  const auto check = [](const std::string& key, const Vector<double>& due, Radii rule) {
    CAPTURE(key, static_cast<int>(rule));
    const auto comma = key.find(',');
    const Index d = std::stol(key.substr(0, comma));
    const Index h = std::stol(key.substr(comma + 1));
    CHECK(worst_relative_error(sample_radii(h, d, rule, Philox(kSeed)), due) <= 1e-13);
  };
  for (const auto& [key, radii] : json["quantile_rule"].items())
    check(key, golden::vector(radii), Radii::quantile);
  for (const auto& [key, radii] : json["midpoint_rule"].items())
    check(key, golden::vector(radii), Radii::midpoint);

  const Vector<double> many = sample_radii(256, 64, Radii::quantile, Philox(kSeed));
  for (const auto& [i, radius] : json["d64_m256"].items()) {
    CAPTURE(i);
    CHECK(std::abs(many(std::stol(i) - 1) / radius.get<double>() - 1) <= 1e-13);
  }
}

TEST_CASE("quantiles agree with quadrature in every dimension, far into both tails", "[radii]") {
  for (const Index d : {1, 2, 3, 8, 31, 32, 64, 127, 128, 1023, 1024}) {
    const ChiDistribution chi(d);
    const Quadrature quadrature(d);
    for (const auto& [p, q] : levels()) {
      CAPTURE(d, p, q);
      CHECK(std::abs(quadrature.error(chi.quantile(p, q), p, q)) <= 1e-13);
    }
  }
}

TEST_CASE("quantiles in one and two dimensions are the closed forms", "[radii]") {
  for (const auto& [p, q] : levels()) {
    CAPTURE(p, q);
    const double rayleigh = std::sqrt(-2 * (p < q ? std::log1p(-p) : std::log(q)));
    CHECK(std::abs(ChiDistribution(2).quantile(p, q) / rayleigh - 1) <= 1e-13);
    const double half_normal = ChiDistribution(1).quantile(p, q);
    const double above = std::erfc(half_normal / std::sqrt(2.0));
    const double below = std::erf(half_normal / std::sqrt(2.0));
    CHECK(std::abs(p < q ? below / p - 1 : above / q - 1) <= 1e-13);
  }
}

TEST_CASE("the distribution undoes its quantile, and both are monotone", "[radii]") {
  for (const Index d : {1, 2, 3, 8, 64, 128, 1024, 5000}) {
    const ChiDistribution chi(d);
    double previous_radius = 0;
    double previous_lower = 0;
    for (int i = 1; i < 400; ++i) {
      const double p = i / 400.0;
      const double radius = chi.quantile(p, 1 - p);
      CAPTURE(d, p, radius);
      const ChiDistribution::Point point = chi.at(radius);
      CHECK(std::abs(point.lower / p - 1) <= 1e-12);
      CHECK(std::abs(point.upper / (1 - p) - 1) <= 1e-12);
      CHECK(radius > previous_radius);
      CHECK(point.lower > previous_lower);
      previous_radius = radius;
      previous_lower = point.lower;
    }
    for (const auto& [p, q] : levels()) {
      CAPTURE(d, p, q);
      const ChiDistribution::Point point = chi.at(chi.quantile(p, q));
      CHECK(std::abs(p < q ? point.lower / p - 1 : point.upper / q - 1) <= 1e-12);
    }
  }
}

TEST_CASE("quantiles end, and are finite, at the extremes", "[radii]") {
  for (const Index d : {1, 2, 3, 1000, 1000000}) {
    for (const double tail : {1e-100, 0x1p-53}) {
      CAPTURE(d, tail);
      const ChiDistribution chi(d);
      const double lowest = chi.quantile(tail, 1 - tail);
      const double highest = chi.quantile(1 - tail, tail);
      CHECK(lowest > 0);
      CHECK(highest > lowest);
      CHECK(std::isfinite(highest));
    }
  }
}

TEST_CASE("fixed radii are sqrt(d)", "[radii]") {
  const Vector<double> radii = sample_radii(5, 7, Radii::fixed, Philox(kSeed));
  REQUIRE(radii.size() == 5);
  for (const double radius : radii) CHECK(radius == std::sqrt(7.0));
}

TEST_CASE("stratified radii have one draw in every stratum", "[radii]") {
  CAPTURE(kSeed);
  constexpr Index kRows = 50;
  const Vector<double> radii = sample_radii(kRows, 6, Radii::stratified, Philox(kSeed));
  const Vector<double> middle = sample_radii(kRows, 6, Radii::midpoint, Philox(kSeed));
  const Vector<double> border =
      sample_radii(kRows - 1, 6, Radii::quantile, Philox(kSeed));  // levels i / kRows
  for (Index i = 0; i < kRows; ++i) {
    CAPTURE(i);
    CHECK((i == 0 || radii(i) > border(i - 1)));
    CHECK((i == kRows - 1 || radii(i) < border(i)));
  }
  CHECK((radii - middle).cwiseAbs().minCoeff() > 0);
}

TEST_CASE("chi and stratified radii have the moments of the chi distribution", "[radii]") {
  // E[r^2] = d, Var[r^2] = 2 d; stratification only lowers the variance.
  constexpr Index kRows = 4000;
  for (const Radii rule : {Radii::chi, Radii::stratified}) {
    for (const Index d : {1, 2, 5, 64}) {
      CAPTURE(kSeed, static_cast<int>(rule), d);
      const Vector<double> radii = sample_radii(kRows, d, rule, Philox(kSeed));
      const auto dimension = static_cast<double>(d);
      const double mean = radii.squaredNorm() / kRows;
      CHECK(std::abs(mean - dimension) <= 4 * std::sqrt(2 * dimension / kRows));
      const double variance = (radii.array().square() - dimension).square().mean();
      // Var[(r^2 - d)^2] = 8 d^2 + 48 d
      const double error = std::sqrt((8 * dimension * dimension + 48 * dimension) / kRows);
      CHECK(std::abs(variance - 2 * dimension) <= 4 * error);
    }
  }
}

TEST_CASE("radii reject empty shapes and say which", "[radii]") {
  REQUIRE_THROWS_AS(sample_radii(0, 4, Radii::chi, Philox(kSeed)), std::invalid_argument);
  REQUIRE_THROWS_WITH(sample_radii(0, 4, Radii::chi, Philox(kSeed)),
                      ContainsSubstring("number of radii: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(sample_radii(3, -2, Radii::fixed, Philox(kSeed)),
                      ContainsSubstring("dimension of the radii: got -2, expected at least 1"));
}
