// Sketches of polynomials: unbiased, of the variance they are said to have, and good for large arguments. Bounds are four
// standard errors.
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/feature_maps/random_maclaurin.hpp>
#include <phiattn/feature_maps/tensor_sketch.hpp>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;
constexpr int kDraws = 2000;
constexpr TensorPower kFamilies[] = {TensorPower::taylor, TensorPower::exponential_limit};

/// q and k of that norm at q . k = cosine norm^2, not along the axes.
std::pair<RowVector<double>, RowVector<double>> query_and_key(Index d, double norm, double cosine) {
  RowVector<double> u = RowVector<double>::LinSpaced(d, 1, 2).normalized();
  RowVector<double> w = RowVector<double>::LinSpaced(d, 1.5, -0.7);
  w = (w - w.dot(u) * u).normalized();
  return {norm * u, norm * (cosine * u + std::sqrt(1 - cosine * cosine) * w)};
}

double polynomial(TensorPower family, Index n, double x) {
  double sum = 0, term = 1;
  for (Index j = 0; j <= n; ++j) {
    sum += term;
    const double ratio =
        family == TensorPower::taylor ? 1 : static_cast<double>(n - j) / static_cast<double>(n);
    term *= x * ratio / static_cast<double>(j + 1);
  }
  return sum;
}

template <class Map>
Moments estimates(TensorPower family, Index n, Index m, const RowVector<double>& q,
                  const RowVector<double>& k) {
  std::vector<double> sample;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Map map(family, q.size(), n, m, kSeed + static_cast<std::uint64_t>(draw));
    sample.push_back(map.query_features(q).row(0).dot(map.key_features(k).row(0)));
  }
  return Moments(sample);
}

/// sum_i q_i^2 k_i^2
double squares(const RowVector<double>& q, const RowVector<double>& k) {
  return q.cwiseAbs2().dot(k.cwiseAbs2());
}

/// Of the sketch of (q . k)^j in m buckets.
double tensor_sketch_variance(Index j, Index m, const RowVector<double>& q, const RowVector<double>& k) {
  const double a = std::pow(q.dot(k), 2);
  const double b = q.squaredNorm() * k.squaredNorm() - squares(q, k);
  const double e = a - squares(q, k);
  const auto power = [j](double x) { return std::pow(x, static_cast<double>(j)); };
  const double both = power(a + b + e) - power(a + b) - power(a + e) + power(a);
  const auto buckets = static_cast<double>(m);
  return (power(a + b) + power(a + e) - 2 * power(a) + (m % 2 == 0 ? 2 : 1) * both / buckets) / buckets;
}

}  // namespace

TEST_CASE("tensor sketches are unbiased, with the variance derived for them", "[feature_maps]") {
  for (const auto family : kFamilies) {
    for (const Index n : {2, 3, 5}) {
      for (const Index buckets : {8, 9}) {
        for (const double cosine : {0.8, -0.4}) {
          const auto [q, k] = query_and_key(6, 1.1, cosine);
          const Index m = 1 + 6 + buckets * (n - 1);
          const double due = polynomial(family, n, q.dot(k));
          double variance = 0;
          const Vector<double> c = polynomial_coefficients(family, n);
          for (Index j = 2; j <= n; ++j) variance += c(j) * c(j) * tensor_sketch_variance(j, buckets, q, k);
          const Moments came = estimates<TensorSketchFeatures<double>>(family, n, m, q, k);
          CAPTURE(kSeed, static_cast<int>(family), n, buckets, cosine, due, came.mean, variance,
                  came.variance);
          CHECK(std::abs(came.mean - due) <= 4 * std::sqrt(variance / kDraws));
          CHECK(std::abs(came.variance - variance) <= 4 * came.variance_error);
        }
      }
    }
  }
}

TEST_CASE("random Maclaurin features are unbiased, with the variance derived for them", "[feature_maps]") {
  using Map = RandomMaclaurinFeatures<double>;
  constexpr Index kSketched = 24;
  for (const auto family : kFamilies) {
    for (const Index n : {2, 3, 8}) {
      for (const double cosine : {0.8, -0.4}) {
        const auto [q, k] = query_and_key(6, 0.8, cosine);
        const double x = q.dot(k);
        const double v = q.squaredNorm() * k.squaredNorm() + 2 * x * x - 2 * squares(q, k);
        const double due = polynomial(family, n, x);
        const Vector<double> c = polynomial_coefficients(family, n);
        double second = 0;
        for (Index j = 2; j <= n; ++j) {
          second += c(j) * c(j) * std::pow(v, static_cast<double>(j)) / Map::degree_probability(j, n);
        }
        const double variance = (second - std::pow(due - 1 - x, 2)) / kSketched;
        const Moments came = estimates<Map>(family, n, 1 + 6 + kSketched, q, k);
        CAPTURE(kSeed, static_cast<int>(family), n, cosine, due, came.mean, variance, came.variance);
        CHECK(std::abs(came.mean - due) <= 4 * std::sqrt(variance / kDraws));
        CHECK(std::abs(came.variance - variance) <= 4 * came.variance_error);
      }
    }
  }
}

TEST_CASE("the probabilities of the degrees sum to 1 and halve", "[feature_maps]") {
  using Map = RandomMaclaurinFeatures<float>;
  for (const Index n : {2, 3, 20}) {
    double sum = 0;
    for (Index j = 2; j <= n; ++j) sum += Map::degree_probability(j, n);
    CHECK(sum == Approx(1).epsilon(1e-14));
    if (n > 2) CHECK(Map::degree_probability(3, n) == Approx(Map::degree_probability(2, n) / 2));
  }
}

TEST_CASE("coefficients of the polynomials", "[feature_maps]") {
  for (const auto family : kFamilies) {
    for (const Index n : {2, 5}) {
      for (const double x : {-1.5, 0.3, 2.0}) {
        double sum = 0;
        const Vector<double> c = polynomial_coefficients(family, n);
        for (Index j = 0; j <= n; ++j) sum += c(j) * std::pow(x, static_cast<double>(j));
        CHECK(sum == Approx(polynomial(family, n, x)).epsilon(1e-13));
      }
      const double one = 1 + 0.3 / static_cast<double>(n);
      if (family == TensorPower::exponential_limit) {
        CHECK(polynomial(family, n, 0.3) == Approx(std::pow(one, static_cast<double>(n))).epsilon(1e-13));
      }
    }
  }
}

TEMPLATE_TEST_CASE("sketches keep degrees and scores that no float holds: |q . k| = 1e4, n = 16",
                   "[feature_maps]", TensorSketchFeatures<float>, RandomMaclaurinFeatures<float>) {
  const auto [q, k] = query_and_key(8, 100, -1);
  for (const auto family : kFamilies) {
    const TestType map(family, 8, 16, 128, kSeed);
    LinearState<TestType> state(map, 1, {.scale = 1});
    state.append(k.cast<float>(), RowVector<float>::Constant(1, 3));
    const auto read = state.read_partial(q.cast<float>());
    CHECK(std::isfinite(read.log_normaliser(0)));
    CHECK(read.log_normaliser(0) > 50);  // features are multiplied by up to 100^16 = e^73.7 on each side
    CHECK(read.out(0, 0) == Approx(3).epsilon(1e-5));
  }
}

TEMPLATE_TEST_CASE("a sketch is a function of its arguments, and refuses too few", "[feature_maps]",
                   TensorSketchFeatures<double>, RandomMaclaurinFeatures<double>) {
  const RowVector<double> x = query_and_key(5, 1, 0.5).first;
  const auto features = [&](std::uint64_t seed) {
    return TestType(TensorPower::taylor, 5, 4, 40, seed).query_features(x);
  };
  CHECK(features(1) == features(1));
  CHECK(features(1) != features(2));
  const TestType map(TensorPower::taylor, 5, 4, 9);
  CHECK(map.dimension() == 5);
  CHECK(map.degree() == 4);
  CHECK(map.feature_dimension() == 9);
  CHECK_THROWS_AS(TestType(TensorPower::taylor, 5, 4, 8), std::invalid_argument);
  CHECK_THROWS_AS(TestType(TensorPower::taylor, 5, 1, 40), std::invalid_argument);
  CHECK_THROWS_AS(TestType(TensorPower::taylor, 0, 4, 40), std::invalid_argument);
}
