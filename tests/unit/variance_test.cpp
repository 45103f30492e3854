// The closed forms of bias and variance: against special cases, against what the library's projections do, and what the
// planner makes of them.
#include <phiattn/analysis/planner.hpp>
#include <phiattn/analysis/variance.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

using Kind = RandomFeatures;

constexpr std::uint64_t kSeed = 2021;

bool is_trigonometric(Kind kind) {
  return kind == Kind::trigonometric || kind == Kind::orthogonal_trigonometric;
}

/// The frequencies that a kind of features is about.
Projection<double> frequencies(Kind kind, Index m, Index d, double z, std::uint64_t seed) {
  const bool independent = kind == Kind::iid || kind == Kind::antithetic || kind == Kind::favor_plusplus ||
                           kind == Kind::trigonometric;
  const bool pairs =
      kind == Kind::antithetic || kind == Kind::antithetic_orthogonal || kind == Kind::antithetic_fixed;
  const auto omega =
      sample_projection<double>(is_trigonometric(kind) ? m / 2 : m, d,
                                {independent ? Directions::iid : Directions::orthogonal,
                                 kind == Kind::antithetic_fixed ? Radii::fixed : Radii::chi, pairs, seed});
  return kind == Kind::favor_plusplus ? favor_plusplus(omega, favor_plusplus_parameter(z * z, d)) : omega;
}

/// Estimates of exp(q . k) over exp(q . k), one a seed. They depend on q + k or q - k alone: here z e_1.
std::vector<double> estimates(Kind kind, Index m, Index d, double z, int draws) {
  std::vector<double> sample;
  for (int draw = 0; draw < draws; ++draw) {
    const auto omega = frequencies(kind, m, d, z, kSeed + static_cast<std::uint64_t>(draw));
    const Vector<double> products = z * omega.matrix().col(0);
    double sum = 0;
    for (Index i = 0; i < products.size(); ++i) {
      const double log_weight = omega.log_weights().size() > 0 ? omega.log_weights()(i) : 0;
      sum += is_trigonometric(kind) ? std::exp(z * z / 2) * std::cos(products(i))
                                    : std::exp(products(i) - z * z / 2 + log_weight);
    }
    sample.push_back(sum / static_cast<double>(products.size()));
  }
  return sample;
}

double variance(Kind kind, Index m, Index d, double z) { return relative_moments(kind, m, d, z, z).variance; }

constexpr RandomFeatures kAll[] = {Kind::iid,
                                   Kind::antithetic,
                                   Kind::orthogonal,
                                   Kind::antithetic_orthogonal,
                                   Kind::antithetic_fixed,
                                   Kind::favor_plusplus,
                                   Kind::trigonometric,
                                   Kind::orthogonal_trigonometric};

}  // namespace

TEST_CASE("the projections of the library have the bias and the variance of the closed forms", "[variance]") {
  // 28 features: 3 blocks and a half of d = 8, or 1 and 3/4 of pairs.
  constexpr int kDraws = 4000;
  for (const Index d : {2, 8}) {
    for (const Kind kind : kAll) {
      for (const double z : {0.5, 1.0}) {
        CAPTURE(kSeed, d, static_cast<int>(kind), z);
        const Moments sample(estimates(kind, 28, d, z, kDraws));
        const RelativeMoments due = relative_moments(kind, 28, d, z, z);
        CHECK(std::abs(sample.mean - 1 - due.bias) <= 4 * sample.error);
        CHECK(std::abs(sample.variance - due.variance) <= 4 * sample.variance_error);
        CHECK(sample.variance_error < 0.2 * due.variance);
      }
    }
  }
}

TEST_CASE("variances where they are elementary", "[variance]") {
  for (const double z : {1e-3, 0.1, 1.0, 3.0}) {
    const double x = z * z;
    CHECK(variance(Kind::iid, 10, 5, z) == Approx(std::expm1(x) / 10));
    CHECK(variance(Kind::antithetic, 10, 5, z) == Approx(4 * std::pow(std::sinh(x / 2), 2) / 10));
    CHECK(variance(Kind::trigonometric, 10, 5, z) == Approx(4 * std::pow(std::sinh(x / 2), 2) / 10));
    // In one dimension nothing is orthogonal to anything.
    CHECK(variance(Kind::orthogonal, 10, 1, z) == Approx(variance(Kind::iid, 10, 1, z)));
    // 1F1(d; d/2; y) = e^y 1F1(-d/2; d/2; -y): 1 + y for d = 2, 1 + y + y^2/6 for d = 4; y = x/2.
    const double two = std::expm1(-x / 2 + std::log1p(x / 2));
    CHECK(detail::orthogonal_covariance(x, 2) == Approx(two).epsilon(1e-9));
    CHECK(variance(Kind::orthogonal, 2, 2, z) == Approx((std::expm1(x) + two) / 2));
    CHECK(detail::orthogonal_covariance(x, 4) ==
          Approx(std::expm1(-x / 2 + std::log1p(x / 2 + x * x / 24))).epsilon(1e-9));
    // The same with y = -x/2.
    const double minus_two =
        x < 1 ? std::expm1(x / 2 + std::log1p(-x / 2)) : std::exp(x / 2) * (1 - x / 2) - 1;
    CHECK(detail::orthogonal_covariance(-x, 2) == Approx(minus_two).epsilon(1e-9));
    CHECK(detail::orthogonal_covariance(-x, 4) ==
          Approx(std::expm1(x / 2) + std::exp(x / 2) * (x * x / 24 - x / 2)).epsilon(1e-9).margin(1e-15));
    // In a great many dimensions random directions are orthogonal anyway.
    CHECK(std::abs(detail::orthogonal_covariance(x, 1e9)) < 1e-8 * std::exp(x));
  }
}

TEST_CASE("fixed radii where they are elementary", "[variance]") {
  for (const double z : {0.1, 1.0, 4.0}) {
    // 0F1 is cosh(R z) in one dimension and sinh(R z) / (R z) in three.
    Vector<double> radii(2);
    radii << 0.5, 2;
    const double due = std::exp(-z * z / 2);
    CHECK(radii_bias(radii, 1, z) == Approx(due * (std::cosh(0.5 * z) + std::cosh(2 * z)) / 2 - 1));
    CHECK(radii_bias(radii.transpose(), 3, z) ==
          Approx(due * (std::sinh(0.5 * z) / (0.5 * z) + std::sinh(2 * z) / (2 * z)) / 2 - 1));
    const Vector<double> fixed = Vector<double>::Constant(1, std::sqrt(3.0));
    CHECK(relative_moments(Kind::antithetic_fixed, 6, 3, z, 0).bias == Approx(radii_bias(fixed, 3, z)));
    // In one dimension a pair +-1 is all there is: no variance.
    CHECK(variance(Kind::antithetic_fixed, 2, 1, z) < 1e-13);
  }
  // The rules that spread the radii are less biased than the one that does not, and midpoints less than quantiles.
  const auto bias = [](Radii rule) {
    return std::abs(radii_bias(sample_radii(64, 16, rule, Philox(0)), 16, 2));
  };
  CHECK(bias(Radii::midpoint) < bias(Radii::quantile));
  CHECK(bias(Radii::quantile) < bias(Radii::fixed));
}

TEST_CASE("the covariance of orthogonal frequencies is what makes them better, and never worse",
          "[variance]") {
  for (const Index d : {2, 16, 64}) {
    for (const double z : {1e-4, 0.01, 0.5, 2.0, 6.0, 26.0}) {
      CAPTURE(d, z);
      CHECK(variance(Kind::orthogonal, 4 * d, d, z) <= variance(Kind::iid, 4 * d, d, z));
      CHECK(variance(Kind::antithetic_orthogonal, 4 * d, d, z) <= variance(Kind::antithetic, 4 * d, d, z));
      CHECK(variance(Kind::favor_plusplus, 4 * d, d, z) <= variance(Kind::iid, 4 * d, d, z) * (1 + 1e-12));
      CHECK(variance(Kind::antithetic_orthogonal, 4 * d, d, z) >= 0);
      // Leading term -x^2 / (2 (d + 2)).
      if (z <= 0.01) {
        CHECK(detail::orthogonal_covariance(z * z, static_cast<double>(d)) ==
              Approx(-std::pow(z, 4) / static_cast<double>(2 * (d + 2))).epsilon(1e-3));
      }
    }
  }
}

TEST_CASE("beyond double a variance is infinite, not NaN", "[variance]") {
  for (const Kind kind : kAll) {
    CAPTURE(static_cast<int>(kind));
    for (const double z : {0.0, 20.0, 26.0, 30.0, 1e3}) {
      CAPTURE(z);
      const RelativeMoments moments = relative_moments(kind, 64, 8, z, z);
      CHECK_FALSE(std::isnan(moments.variance));
      CHECK_FALSE(std::isnan(moments.bias));
      if (z == 0) CHECK(moments.error() == 0);
      if (z < 1e3) continue;
      if (kind == Kind::antithetic_fixed) {  // e^{R z} is nothing beside e^{z^2/2}: the estimate is 0
        CHECK(moments.bias == Approx(-1));
        CHECK(moments.variance < 1e-14);
      } else if (kind != Kind::favor_plusplus) {  // that of FAVOR++ grows as z^d alone
        CHECK(moments.variance == std::numeric_limits<double>::infinity());
      }
    }
  }
}

TEST_CASE("relative errors of the polynomials", "[variance]") {
  for (const double x : {-3.0, -0.5, 1e-6, 0.5, 3.0}) {
    double taylor = 0, term = 1;
    for (int n = 0; n <= 6; ++n) {
      taylor += term;
      term *= x / (n + 1);
      CAPTURE(x, n);
      // Where the polynomial is as good as double, the difference is not.
      CHECK(taylor_error(n, x) == Approx(std::abs(taylor * std::exp(-x) - 1)).epsilon(1e-9).margin(1e-14));
      if (n > 0) {
        CHECK(exponential_limit_error(n, x) ==
              Approx(std::abs(std::pow(1 + x / n, n) * std::exp(-x) - 1)).epsilon(1e-9).margin(1e-14));
      }
    }
  }
  CHECK(taylor_error(3, 0) == 0);
  CHECK(taylor_error(4, 1e-3) == Approx(1e-15 / 120).epsilon(1e-3));
}

TEST_CASE("a plan is the least number of features that is good enough", "[variance]") {
  constexpr double kTolerance = 0.1;
  for (const Index d : {16, 64}) {
    for (const double norm : {0.3, 1.0, 1.5}) {
      const PlanOptions options{norm, 0.8 * norm, d, kTolerance, 0.25};
      const std::vector<FeaturePlan> plan = plan_features(options);
      REQUIRE(plan.size() == std::size(kAll) + 2);
      const double z = norm * std::sqrt(1 + 0.64 + 2 * 0.25 * 0.8);
      for (std::size_t i = 0; i < std::size(kAll); ++i) {
        CAPTURE(d, norm, plan[i].map);
        const double bias = relative_moments(kAll[i], 2 * d, d, z, z).bias;
        if (!plan[i].features) {
          CHECK(std::abs(bias) >= kTolerance);
          continue;
        }
        const Index m = *plan[i].features;
        CHECK(relative_moments(kAll[i], m, d, z, z).error() <= kTolerance * (1 + 1e-12));
        // A block less, or a unit less below one block, is not.
        const Index unit =
            kAll[i] == Kind::iid || kAll[i] == Kind::orthogonal || kAll[i] == Kind::favor_plusplus ? 1 : 2;
        const bool blocks = kAll[i] != Kind::iid && kAll[i] != Kind::antithetic &&
                            kAll[i] != Kind::favor_plusplus && kAll[i] != Kind::trigonometric && m > d * unit;
        const Index less = m - (blocks ? d * unit : unit);
        if (less > 0) CHECK(relative_moments(kAll[i], less, d, z, z).error() > kTolerance);
      }
    }
  }
}

TEST_CASE("plans of known size, and what does not fit", "[variance]") {
  const auto planned = [](const PlanOptions& options) {
    std::map<std::string, std::optional<Index>> by_name;
    for (const FeaturePlan& plan : plan_features(options)) by_name[plan.map] = plan.features;
    return by_name;
  };
  // |q| = |k| = 1 at any angle: z = 2, (e^4 - 1) / 0.01 = 5359.8...
  auto plan = planned({1, 1, 16, 0.1});
  CHECK(plan["iid"] == 5360);
  CHECK(plan["Taylor"] == 969);               // degree 3, C(19, 3): e T_2(-1) is off by 36 %, 3 by 9.4 %
  CHECK(plan["exponential limit"] == 74613);  // degree 6, C(22, 6): e (1 - 1/5)^5 is off by 11 %, 6 by 9.0 %
  // Norms of a trained head, |q| = 4.4 and |k| = 5.2: no random map fits, and no polynomial.
  for (const auto& [name, features] : planned({4.4, 5.2, 64, 0.1, 0.5})) {
    CAPTURE(name);
    CHECK_FALSE(features);
  }
  // No norm, no work.
  for (const auto& [name, features] : planned({0, 0, 64, 0.1})) {
    CAPTURE(name);
    REQUIRE(features);
    CHECK(*features <= 65);
  }
}

TEST_CASE("variances and plans refuse numbers out of range", "[variance]") {
  CHECK_THROWS_WITH(relative_moments(Kind::iid, 0, 4, 1, 1), ContainsSubstring("features m: got 0"));
  CHECK_THROWS_WITH(relative_moments(Kind::antithetic, 3, 4, 1, 1),
                    ContainsSubstring("got 3, expected an even number"));
  CHECK_THROWS_WITH(relative_moments(Kind::iid, 4, 0, 1, 1), ContainsSubstring("dimension d: got 0"));
  CHECK_THROWS_WITH(relative_moments(Kind::iid, 4, 4, -1, 1), ContainsSubstring("z or r: got -1"));
  CHECK_THROWS_WITH(relative_moments(Kind::iid, 4, 4, 1, NAN), ContainsSubstring("z or r: got nan"));
  CHECK_THROWS_WITH(radii_bias(Vector<double>(), 4, 1), ContainsSubstring("number of radii: got 0"));
  CHECK_THROWS_WITH(radii_bias(Vector<double>::Constant(1, -1), 4, 1), ContainsSubstring("radius times z"));
  CHECK_THROWS_WITH(plan_features({-1, 1, 4, 0.1}), ContainsSubstring("norm: got -1"));
  CHECK_THROWS_WITH(plan_features({1, 1, 0, 0.1}), ContainsSubstring("dimension d: got 0"));
  CHECK_THROWS_WITH(plan_features({1, 1, 4, 0}), ContainsSubstring("tolerance: got 0"));
  CHECK_THROWS_WITH(plan_features({1, 1, 4, 0.1, 2}), ContainsSubstring("largest_cosine: got 2"));
  CHECK_THROWS_AS(taylor_error(-1, 1), std::invalid_argument);
  CHECK_THROWS_AS(exponential_limit_error(0, 1), std::invalid_argument);
}
