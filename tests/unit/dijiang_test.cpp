// DiJiang's features: the transform, the two normalisations, and how far the untrained map is from exp(q . k).
#include <phiattn/feature_maps/dijiang.hpp>
#include <phiattn/feature_maps/positive_random.hpp>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

RowVector<double> token(Index d, double norm, double slope) {
  return norm * RowVector<double>::LinSpaced(d, 1, 1 + slope).normalized();
}

}  // namespace

TEST_CASE("the cosine transform is orthonormal, and its first row constant", "[feature_maps]") {
  for (const Index d : {1, 2, 7, 64}) {
    const Matrix<double> c = detail::cosine_transform(d);
    CHECK((c * c.transpose() - Matrix<double>::Identity(d, d)).norm() < 1e-12);
    CHECK(c.row(0).isConstant(1 / std::sqrt(static_cast<double>(d)), 1e-14));
  }
  // d = 2: cos(pi/4) (1, 1) and (cos(pi/4), cos(3 pi/4))
  const double half = std::numbers::sqrt2 / 2;
  CHECK(detail::cosine_transform(2).isApprox(Matrix<double>{{half, half}, {half, -half}}, 1e-14));
}

TEST_CASE("T C has rows t_i c_{i mod d}, t_i standard normal", "[feature_maps]") {
  constexpr Index kD = 8, kM = 4000;
  const Matrix<double> rows = sample_dijiang_projection<double>(kM, kD, kSeed).matrix();
  const Matrix<double> products = rows * detail::cosine_transform(kD).transpose();
  std::vector<double> t;
  for (Index i = 0; i < kM; ++i) {
    t.push_back(products(i, i % kD));
    RowVector<double> others = products.row(i);
    others(i % kD) = 0;
    REQUIRE(others.norm() < 1e-13);
  }
  const Moments moments(t);
  CAPTURE(kSeed, moments.mean, moments.variance);
  CHECK(std::abs(moments.mean) <= 4 / std::sqrt(static_cast<double>(kM)));
  CHECK(std::abs(moments.variance - 1) <= 4 * std::sqrt(2.0 / static_cast<double>(kM)));
  CHECK(rows == sample_dijiang_projection<double>(kM, kD, kSeed).matrix());
  CHECK(rows != sample_dijiang_projection<double>(kM, kD, kSeed + 1).matrix());
  CHECK_THROWS_AS(sample_dijiang_projection<float>(0, 3), std::invalid_argument);
  CHECK_THROWS_AS(sample_dijiang_projection<float>(3, 0), std::invalid_argument);
}

TEST_CASE("DiJiang features are D exp(T C x), or that over the sum of exponentials", "[feature_maps]") {
  const Matrix<double> omega = sample_dijiang_projection<double>(5, 5, kSeed).matrix();
  const Vector<double> log_weights = Vector<double>::LinSpaced(5, -2, 1);
  const RowVector<double> x = token(5, 2, 3);
  const RowVector<double> exponentials = (omega * x.transpose()).array().exp().matrix().transpose();
  const RowVector<double> weighted =
      (exponentials.array() * (log_weights.array() / 2).exp().transpose()).matrix();
  const Projection<double> projection(omega, log_weights);
  const DiJiangFeatures<double> plain(projection), softmax(projection, DiJiangNormalisation::softmax);
  CHECK(plain.query_features(x).row(0).isApprox(weighted, 1e-13));
  CHECK(softmax.key_features(x).row(0).isApprox(weighted / exponentials.sum(), 1e-13));
  const DiJiangFeatures<double> unweighted(Projection<double>(omega), DiJiangNormalisation::softmax);
  CHECK(unweighted.key_features(x).sum() == Approx(1).epsilon(1e-13));
}

TEST_CASE(
    "untrained frequencies estimate 1/d sum_i exp((c_i . z)^2 / 2), and times sqrt(d) what begins like "
    "exp(|z|^2 / 2)",
    "[feature_maps]") {
  constexpr int kDraws = 2000;
  constexpr Index kD = 8;
  for (const double norm : {0.3, 0.6}) {
    const RowVector<double> q = token(kD, norm, -1.7), k = token(kD, norm, 0.8);
    const RowVector<double> z = q + k;
    const Vector<double> spectrum = detail::cosine_transform(kD) * z.transpose();
    const double exact = std::exp(z.squaredNorm() / 2);
    for (const double factor : {1.0, std::sqrt(static_cast<double>(kD))}) {
      std::vector<double> sample;
      for (int draw = 0; draw < kDraws; ++draw) {
        const auto projection =
            sample_dijiang_projection<double>(kD, kD, kSeed + static_cast<std::uint64_t>(draw));
        const PositiveRandomFeatures<double> map(projection.scaled(factor));
        sample.push_back(map.query_features(q).row(0).dot(map.key_features(k).row(0)) / std::exp(q.dot(k)));
      }
      const double due = ((factor * spectrum).array().square() / 2).exp().mean() / exact;
      const Moments estimate(sample);
      CAPTURE(kSeed, norm, factor, due, estimate.mean, estimate.error);
      CHECK(std::abs(estimate.mean - due) <= 4 * estimate.error);
      // By the series of the exponential: too small by (1 - 1/d) |z|^2 / 2, or right to that order.
      const double square = z.squaredNorm();
      const double bias = factor == 1 ? -(1 - 1.0 / kD) * square / 2 : 0;
      CHECK(std::abs(due - 1 - bias) <= kD * square * square);
    }
  }
}
