// Positive feature maps against their formulas, and random features against the kernel that they estimate.
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

template <class S>
Matrix<S> some(Index rows, Index cols, double size = 1) {
  return Matrix<S>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return static_cast<S>(size * std::sin(1 + 2.3 * static_cast<double>(i * cols + j)));
  });
}

/// q and k in d dimensions with |q + k| = z and q . k != 0.
std::pair<RowVector<double>, RowVector<double>> query_and_key(Index d, double z) {
  RowVector<double> q = RowVector<double>::LinSpaced(d, 1, 2), k = RowVector<double>::LinSpaced(d, 1.5, -0.2);
  const double factor = z / (q + k).norm();
  return {factor * q, factor * k};
}

}  // namespace

TEST_CASE("positive random features are exp(omega . x - |x|^2 / 2) / sqrt(m)", "[feature_maps]") {
  const Matrix<double> omega = some<double>(7, 5, 2), x = some<double>(4, 5);
  const PositiveRandomFeatures<double> map(omega);
  CHECK(map.dimension() == 5);
  CHECK(map.feature_dimension() == 7);
  const Matrix<double> phi = map.query_features(x);
  CHECK(phi == map.key_features(x));
  for (Index t = 0; t < 4; ++t) {
    for (Index i = 0; i < 7; ++i) {
      const double expected =
          std::exp(omega.row(i).dot(x.row(t)) - x.row(t).squaredNorm() / 2) / std::sqrt(7.0);
      CHECK(phi(t, i) == Approx(expected).epsilon(1e-14));
    }
  }
}

TEST_CASE(
    "iid positive random features estimate exp(q . k) within four standard errors of their known variance",
    "[feature_maps]") {
  constexpr Index kDraws = 400;
  constexpr Index kFeatures = 64;
  for (const Index d : {2, 8, 33}) {
    for (const double z : {0.5, 1.0, 1.5}) {
      const auto [q, k] = query_and_key(d, z);
      // The estimate over exp(q . k) has mean 1 and variance (e^{z^2} - 1) / m, m the features of all draws together.
      double mean = 0;
      for (Index draw = 0; draw < kDraws; ++draw) {
        const PositiveRandomFeatures<double> map(sample_projection<double>(
            kFeatures, d,
            {.directions = Directions::iid, .antithetic = false, .seed = static_cast<std::uint64_t>(draw)}));
        const double estimate = map.query_features(q).row(0).dot(map.key_features(k).row(0));
        mean += estimate / std::exp(q.dot(k)) / kDraws;
      }
      const double standard_error = std::sqrt(std::expm1(z * z) / (kFeatures * kDraws));
      CAPTURE(d, z, mean, standard_error);
      CHECK(std::abs(mean - 1) < 4 * standard_error);
    }
  }
}

TEST_CASE("the variance of iid positive random features is (e^{|q+k|^2} - 1) / m", "[feature_maps]") {
  constexpr Index kDraws = 2000;
  constexpr Index kFeatures = 64;
  constexpr double z = 0.7;
  const auto [q, k] = query_and_key(5, z);
  double square = 0, fourth = 0;
  for (Index draw = 0; draw < kDraws; ++draw) {
    const PositiveRandomFeatures<double> map(sample_projection<double>(
        kFeatures, 5,
        {.directions = Directions::iid, .antithetic = false, .seed = static_cast<std::uint64_t>(draw)}));
    const double error =
        map.query_features(q).row(0).dot(map.key_features(k).row(0)) / std::exp(q.dot(k)) - 1;
    square += error * error / kDraws;
    fourth += std::pow(error, 4) / kDraws;
  }
  const double standard_error = std::sqrt((fourth - square * square) / kDraws);
  CHECK(std::abs(square - std::expm1(z * z) / kFeatures) < 4 * standard_error);
}

TEMPLATE_TEST_CASE("elu + 1 is x + 1 above 0 and exp(x) below", "[feature_maps]", float, double) {
  using Limits = std::numeric_limits<TestType>;
  const EluFeatures<TestType> map(8);
  Matrix<TestType> x(1, 8);
  x << -50, -2, TestType(-1e-3), 0, TestType(1e-3), 2, 1000, Limits::quiet_NaN();
  const Matrix<TestType> phi = map.query_features(x);
  for (Index i = 0; i < 7; ++i) {
    const double exact = x(i) > 0 ? static_cast<double>(x(i)) + 1 : std::exp(static_cast<double>(x(i)));
    // log1p, then exp: the logarithm, below 50, is rounded.
    CHECK(std::abs(static_cast<double>(phi(i)) - exact) <=
          52 * static_cast<double>(Limits::epsilon()) * exact);
  }
  CHECK(std::isnan(phi(7)));
  CHECK(phi.leftCols(7) == map.key_features(x).leftCols(7));
}

TEMPLATE_TEST_CASE("log features stay finite where the features themselves do not", "[feature_maps]", float,
                   double) {
  const PositiveRandomFeatures<TestType> map(some<TestType>(6, 4, 2));
  const Matrix<TestType> x = some<TestType>(3, 4, 1e6);
  Matrix<TestType> features(3, 6);
  Vector<TestType> log_scale(3);
  map.features(Side::keys, x, 0, {features, log_scale});
  CHECK(features.allFinite());
  CHECK(log_scale.allFinite());
}
