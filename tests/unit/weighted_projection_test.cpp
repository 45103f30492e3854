// Projections with weights: quadrature, FAVOR++, importance sampling. Bounds are four standard errors.

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/fitting/favor_plusplus.hpp>
#include <phiattn/fitting/importance.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

Matrix<double> some(Index rows, Index cols, double size = 1) {
  return Matrix<double>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return size * std::sin(1 + 2.3 * static_cast<double>(i * cols + j));
  });
}

/// 1/m sum_i w_i exp(omega_i . (q + k) - (|q|^2 + |k|^2) / 2) over exp(q . k), from the rows themselves.
double estimate(const Projection<double>& omega, const RowVector<double>& q, const RowVector<double>& k) {
  Vector<double> logs = omega.matrix() * (q + k).transpose();
  if (omega.log_weights().size() > 0) logs += omega.log_weights();
  return (logs.array() - (q + k).squaredNorm() / 2).exp().mean();
}

using Make = std::function<Projection<double>(std::uint64_t seed)>;

Moments estimates(const Make& make, const RowVector<double>& q, const RowVector<double>& k, int draws) {
  std::vector<double> all;
  for (int draw = 0; draw < draws; ++draw) {
    all.push_back(estimate(make(kSeed + static_cast<std::uint64_t>(draw)), q, k));
  }
  return Moments(all);
}

bool same(const Projection<double>& a, const Projection<double>& b) {
  return a.matrix() == b.matrix() && a.log_weights().size() == b.log_weights().size() &&
         (a.log_weights().array() == b.log_weights().array()).all();
}

}  // namespace

TEST_CASE("log-weights enter the features, half of them on either side", "[projection]") {
  const Matrix<double> omega = some(7, 5, 2), x = some(4, 5), y = some(3, 5, 0.7);
  const Vector<double> log_weights = some(7, 1);
  const PositiveRandomFeatures<double> plain(omega);
  const PositiveRandomFeatures<double> weighted(Projection<double>(omega, log_weights));
  const Matrix<double> phi = weighted.query_features(x);
  for (Index i = 0; i < 7; ++i) {
    const double factor = std::exp(log_weights(i) / 2);
    CHECK(phi.col(i).isApprox(factor * plain.query_features(x).col(i), 1e-14));
  }
  const Matrix<double> kernel = phi * weighted.key_features(y).transpose();
  for (Index t = 0; t < 4; ++t) {
    for (Index j = 0; j < 3; ++j) {
      const double due =
          estimate(weighted.projection(), x.row(t), y.row(j)) * std::exp(x.row(t).dot(y.row(j)));
      CHECK(kernel(t, j) == Approx(due).epsilon(1e-13));
    }
  }
}

TEST_CASE("a Gauss-Hermite rule is a projection with log-weights", "[projection]") {
  // Three nodes are exact for polynomials of degree 5; then comes z^6/6! (E[x^6] - 9), with E[x^6] = 15.
  Matrix<double> nodes(3, 1);
  nodes << 0, std::sqrt(3.0), -std::sqrt(3.0);
  const Vector<double> log_weights = Eigen::Vector3d(std::log(2.0), std::log(0.5), std::log(0.5));
  const Projection<double> rule(nodes, log_weights);
  for (const double z : {0.1, 0.5, 1.0}) {
    CAPTURE(z);
    const RowVector<double> half = RowVector<double>::Constant(1, z / 2);
    const double due = 1 - 6 * std::pow(z, 6) / 720 * std::exp(-z * z / 2);
    CHECK(std::abs(estimate(rule, half, half) - due) <= std::pow(z, 8) / 500);
  }
}

TEST_CASE("log-weights come as row or column, from a narrower type, and add up", "[projection]") {
  const Matrix<double> omega = some(3, 2);
  const Eigen::RowVectorXf row = Eigen::RowVector3f(0.5F, -1, 2);
  const Projection<double> weighted(omega, row);
  CHECK(weighted.log_weights() == Vector<double>(row.transpose().cast<double>()));
  CHECK(weighted.matrix() == omega);
  CHECK(Projection<double>(omega).log_weights().size() == 0);
  CHECK(same(Projection<double>(omega).weighted(row), weighted));
  CHECK(weighted.weighted(row.transpose()).log_weights() == 2 * weighted.log_weights());
  CHECK(same(weighted.scaled(2), Projection<double>(2 * omega, row)));
  const auto hadamard =
      sample_projection<double>(21, 20, {.directions = Directions::hadamard, .seed = kSeed});
  CHECK(hadamard.scaled(0.5).matrix() == 0.5 * hadamard.matrix());
  CHECK(hadamard.weighted(some(21, 1)).matrix() == hadamard.matrix());
}

TEST_CASE("FAVOR++ equals the stored one", "[projection][golden]") {
  const auto json = golden::load("favor_plusplus_full.json");
  const Matrix<double> q = golden::matrix(json["q"]), k = golden::matrix(json["k"]),
                       v = golden::matrix(json["v"]);
  const double scale = json["scale"];
  const double a = favor_plusplus_parameter(q, k, scale);
  CHECK(a == Approx(json["A"].get<double>()).epsilon(1e-13));

  const PositiveRandomFeatures<double> map(favor_plusplus(Projection<double>(golden::matrix(json["W"])), a));
  const auto relative_error = [](const Matrix<double>& came, const Matrix<double>& due) {
    return (came - due).cwiseQuotient(due).cwiseAbs().maxCoeff();
  };
  CHECK(relative_error(map.query_features(std::sqrt(scale) * q), golden::matrix(json["phi_q"])) <= 1e-12);
  CHECK(relative_error(map.key_features(std::sqrt(scale) * k), golden::matrix(json["phi_k"])) <= 1e-12);
  const Matrix<double> out = attention(map, q, k, v, {.scale = scale});
  CHECK((out - golden::matrix(json["out"])).cwiseAbs().maxCoeff() <= 1e-13);
}

TEST_CASE("the parameter of FAVOR++ follows from the mean over all pairs", "[projection]") {
  const Matrix<double> q = some(6, 5, 2), k = some(9, 5, 3);
  double phi = 0;
  for (Index i = 0; i < 6; ++i) {
    for (Index j = 0; j < 9; ++j) phi += (q.row(i) + k.row(j)).squaredNorm() / 54 / std::sqrt(5.0);
  }
  const double sum = 2 * phi + 5;
  const double rho = (std::sqrt(sum * sum + 40 * phi) - sum) / (4 * phi);  // as the paper has it
  const double a = favor_plusplus_parameter(q, k);
  CHECK(a == Approx((1 - 1 / rho) / 8).epsilon(1e-12));
  CHECK(favor_plusplus_parameter(q, k, 1 / std::sqrt(5.0)) == a);
  CHECK(favor_plusplus_parameter(2 * q, 2 * k, 0.25 / std::sqrt(5.0)) == Approx(a).epsilon(1e-14));
  CHECK(favor_plusplus_parameter(k, q) == Approx(a).epsilon(1e-14));
  CHECK(favor_plusplus_parameter(Matrix<double>::Zero(1, 5), Matrix<double>::Zero(1, 5)) == 0);
}

TEST_CASE("FAVOR++ is unbiased with the variance of the paper, least at its parameter", "[projection]") {
  constexpr Index kM = 16;
  constexpr Index kD = 6;
  const RowVector<double> q = some(1, kD, 0.6), k = some(1, kD, 0.8);
  const double square = (q + k).squaredNorm();
  // Relative second moment of one iid term: (1-4A)^d (1-8A)^(-d/2) exp(|q+k|^2 / (1-8A)).
  const auto variance = [square](double a) {
    return std::pow(1 - 4 * a, kD) * std::pow(1 - 8 * a, -kD / 2.0) * std::exp(square / (1 - 8 * a)) - 1;
  };
  const double best = favor_plusplus_parameter(q, k, 1.0);
  CHECK(best < -0.01);
  for (const double a : {0.0, best / 2, 0.9 * best, 1.1 * best, 2 * best})
    CHECK(variance(best) < variance(a));

  for (const Directions directions : {Directions::iid, Directions::orthogonal}) {
    for (const bool antithetic : {false, true}) {
      CAPTURE(kSeed, static_cast<int>(directions), antithetic);
      const Moments moments = estimates(
          [&](std::uint64_t seed) {
            return favor_plusplus(
                sample_projection<double>(kM, kD, {directions, Radii::chi, antithetic, seed}), best);
          },
          q, k, 4000);
      CHECK(std::abs(moments.mean - 1) <= 4 * moments.error);
      if (directions == Directions::iid && !antithetic) {
        CHECK(std::abs(moments.variance - variance(best) / kM) <= 4 * moments.variance_error);
      }
    }
  }
}

TEST_CASE("A = 0 leaves a projection alone, and log-weights of its own stay", "[projection]") {
  const Projection<double> omega(some(4, 3), some(4, 1));
  CHECK(same(favor_plusplus(omega, 0), omega));
  const Vector<double> due = some(4, 1) + favor_plusplus(Projection<double>(some(4, 3)), -0.2).log_weights();
  CHECK((favor_plusplus(omega, -0.2).log_weights() - due).cwiseAbs().maxCoeff() <= 1e-15);
}

TEST_CASE("importance-sampled features are unbiased for queries and keys of any kind", "[projection]") {
  constexpr Index kD = 5;
  const Matrix<double> calibration_q = some(12, kD, 1.5), calibration_k = some(20, kD, 1.1);
  for (const Index m : {1, 9, 16}) {
    for (const bool antithetic : {false, true}) {
      for (const bool calibrated : {false, true}) {
        CAPTURE(kSeed, m, antithetic, calibrated);
        RowVector<double> q = some(1, kD, 0.8), k = some(1, kD, -0.3);
        if (calibrated) {
          q = calibration_q.row(3);
          k = -calibration_k.row(3) / 4;
        }
        const Moments moments = estimates(
            [&](std::uint64_t seed) {
              return sample_importance_projection<double>(
                  m, calibration_q, calibration_k, {.antithetic = antithetic, .seed = seed, .scale = 0.7});
            },
            q, k, 4000);
        CHECK(std::abs(moments.mean - 1) <= 4 * moments.error);
        CHECK(moments.error < 0.1);
      }
    }
  }
}

TEST_CASE("importance-sampled features know the pair that they were calibrated on", "[projection]") {
  constexpr Index kD = 6;
  const RowVector<double> q = some(1, kD), k = some(1, kD, 1.2);  // |q + k|^2 is about 13
  const auto variance = [&](double share) {
    const auto make = [&](std::uint64_t seed) {
      return sample_importance_projection<double>(
          32, q, k, {.origin_share = share, .antithetic = false, .seed = seed, .scale = 1.0});
    };
    return estimates(make, q, k, 500).variance;
  };
  // Terms lie between 0 and 1/(1 - share): nowhere near the e^{|q+k|^2} - 1 of plain features.
  CHECK((q + k).squaredNorm() > 8);
  CHECK(variance(0.25) <= 4.0 / 3 / 32);
}

TEST_CASE("importance weights are bounded by the share of the origin, and with nothing else are 1",
          "[projection]") {
  const Matrix<double> q = some(5, 4, 2), k = some(6, 4, 2);
  for (const double share : {0.1, 0.5}) {
    const auto omega = sample_importance_projection<double>(40, q, k, {.origin_share = share, .seed = kSeed});
    REQUIRE(omega.rows() == 40);
    CHECK(omega.log_weights().maxCoeff() <= -std::log(share) + 1e-12);
    CHECK(omega.log_weights().minCoeff() < -0.1);
  }
  for (const ImportanceOptions& options : {ImportanceOptions{.origin_share = 1, .seed = kSeed},
                                           ImportanceOptions{.centres = 0, .seed = kSeed}}) {
    const auto omega = sample_importance_projection<double>(11, q, k, options);
    CHECK(omega.matrix() == sample_projection<double>(11, 4, {.seed = kSeed}).matrix());
    CHECK(omega.log_weights().cwiseAbs().maxCoeff() <= 1e-14);
  }
}

TEST_CASE("an importance projection is a function of its arguments, with the default scale 1/sqrt(d)",
          "[projection]") {
  const Matrix<double> q = some(5, 4, 2), k = some(6, 4, 2);
  const auto omega = sample_importance_projection<double>(20, q, k, {.seed = kSeed});
  CHECK(same(omega, sample_importance_projection<double>(20, q, k, {.seed = kSeed, .scale = 0.5})));
  CHECK_FALSE(same(omega, sample_importance_projection<double>(20, q, k, {.seed = kSeed, .scale = 0.6})));
  CHECK_FALSE(same(omega, sample_importance_projection<double>(20, q, k, {.seed = kSeed + 1})));
  CHECK_FALSE(same(omega, sample_importance_projection<double>(20, q, k, {.centres = 1, .seed = kSeed})));
  const auto single = sample_importance_projection<float>(20, q.cast<float>(), k, {.seed = kSeed});
  CHECK((single.matrix().cast<double>() - omega.matrix()).cwiseAbs().maxCoeff() <= 1e-5);
}

TEST_CASE("wrong weights and calibrations are rejected by name and size", "[projection]") {
  const Matrix<double> omega = some(3, 2), q = some(4, 2), k = some(5, 2);
  Vector<double> weights = Vector<double>::Zero(3);
  REQUIRE_THROWS_WITH(Projection<double>(omega, Vector<double>::Zero(4)),
                      ContainsSubstring("size of log_weights: got 4, expected 3 (rows of omega)"));
  REQUIRE_THROWS_WITH(Projection<double>(some(4, 2), Matrix<double>::Zero(2, 2)),
                      ContainsSubstring("smaller side of log_weights: got 2, expected 1"));
  for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    weights(1) = bad;
    REQUIRE_THROWS_AS(Projection<double>(omega, weights), std::invalid_argument);
    REQUIRE_THROWS_WITH(Projection<double>(omega).weighted(weights), ContainsSubstring("log-weight 1: got "));
  }
  for (const double a :
       {0.1, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    REQUIRE_THROWS_WITH(favor_plusplus(Projection<double>(omega), a),
                        ContainsSubstring("A of FAVOR++: got "));
  }
  REQUIRE_THROWS_WITH(favor_plusplus_parameter(q, some(5, 3)),
                      ContainsSubstring("columns of q: got 2, expected 3"));
  REQUIRE_THROWS_WITH(favor_plusplus_parameter(q.topRows(0), k),
                      ContainsSubstring("rows of q: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(favor_plusplus_parameter(q, k.topRows(0)),
                      ContainsSubstring("rows of k: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(favor_plusplus_parameter(q, k, -1.0), ContainsSubstring("scale: got -1"));

  REQUIRE_THROWS_WITH(sample_importance_projection<double>(0, q, k),
                      ContainsSubstring("rows of omega (m): got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(sample_importance_projection<double>(8, q, some(5, 3)),
                      ContainsSubstring("columns of q: got 2, expected 3"));
  REQUIRE_THROWS_WITH(sample_importance_projection<double>(8, q, k, {.centres = -1}),
                      ContainsSubstring("centres: got -1, expected at least 0"));
  for (const double share : {0.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    REQUIRE_THROWS_WITH(sample_importance_projection<double>(8, q, k, {.origin_share = share}),
                        ContainsSubstring("origin_share: got "));
  }
}
