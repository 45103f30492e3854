// Reparametrisations: the attention they leave alone, the numbers they are fitted to, what they gain.

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/reparametrised.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/reparametrisation/calibration.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

static_assert(LogFeatureMap<Reparametrised<PositiveRandomFeatures<float>>>);
static_assert(SignedFeatureMap<Reparametrised<TaylorFeatures<double>>>);
static_assert(LogFeatureMap<Reparametrised<Reparametrised<PositiveRandomFeatures<double>>>>);

namespace {

constexpr std::uint64_t kSeed = 2021;
constexpr Index kD = 6;

Matrix<double> some(Index rows, Index cols, double size = 1) {
  return Matrix<double>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return size * std::sin(1 + 2.3 * static_cast<double>(i * cols + j));
  });
}

/// Gaussian tokens around a common mean, with some coordinates larger than others.
Matrix<double> tokens(Index n, std::uint64_t stream, double mean) {
  const Philox random(kSeed, stream);
  return Matrix<double>::NullaryExpr(n, kD, [&](Index i, Index j) {
    return random.normal(static_cast<std::uint64_t>(i * kD + j)) * (0.5 + 0.3 * static_cast<double>(j)) +
           mean * (j % 2 == 0 ? 1 : -0.5);
  });
}

struct Named {
  std::string name;
  Reparametrisation value;
};

/// By hand, calibrated, and composed.
std::vector<Named> all_kinds(const Matrix<double>& q, const Matrix<double>& k) {
  const Vector<double> a = some(kD, 1), b = some(kD, 1, -2);
  const auto shift = Reparametrisation::shift(a, b);
  const auto diagonal = Reparametrisation::diagonal(some(kD, 1, 3));
  const auto linear = Reparametrisation::linear(some(kD, kD) + 2 * Matrix<double>::Identity(kD, kD));
  const auto centred = centring(q, k);
  return {
      {"shift", shift},
      {"diagonal", diagonal},
      {"linear", linear},
      {"key centring", key_centring(k)},
      {"centring", centred},
      {"diagonal balance", diagonal_balance(q, k)},
      {"full balance", full_balance(q, k)},
      {"centring, diagonal balance", centred.then(diagonal_balance(centred.queries(q), centred.keys(k)))},
      {"shift, diagonal, shift, linear, shift", shift.then(diagonal).then(shift).then(linear).then(shift)}};
}

double largest_difference(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

/// S = mean x x^T
Matrix<double> second_moment(const Matrix<double>& x) {
  return x.transpose() * x / static_cast<double>(x.rows());
}

double mean_square(const Reparametrisation& r, const Matrix<double>& q, const Matrix<double>& k) {
  return r.queries(q).rowwise().squaredNorm().mean() + r.keys(k).rowwise().squaredNorm().mean();
}

PositiveRandomFeatures<double> random_features(Index m, std::uint64_t seed = kSeed) {
  return PositiveRandomFeatures<double>(sample_projection<double>(m, kD, {.seed = seed}));
}

}  // namespace

TEST_CASE("scores are those of the transformed vectors, a term a key and a term a query",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 1), k = tokens(9, 1, 2);
  for (const auto& [name, r] : all_kinds(q, k)) {
    CAPTURE(name);
    REQUIRE(r.dimension() == kD);
    Matrix<double> scores = 0.3 * r.queries(q) * r.keys(k).transpose();
    scores.rowwise() += r.key_log_weights(k, 0.3).transpose();
    scores.colwise() += r.query_log_factors(q, 0.3);
    CHECK(largest_difference(scores, 0.3 * q * k.transpose()) <= 1e-12);
  }
}

TEST_CASE("softmax attention is unchanged, with its normaliser put right by the query's term",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 1), k = tokens(9, 1, 2), v = some(9, 4);
  const AttentionOptions options{.scale = 0.3};
  KeyValueCache<ExponentialKernel<double>> cache({}, 4, options);
  cache.append(k, v);
  const Partial<double> due = cache.read_partial(q);
  for (const auto& [name, r] : all_kinds(q, k)) {
    CAPTURE(name);
    KeyValueCache<ExponentialKernel<double>> other({}, 4, options);
    other.append(r.keys(k), v, r.key_log_weights(k, 0.3));
    const Partial<double> came = other.read_partial(r.queries(q));
    CHECK(largest_difference(came.out, due.out) <= 1e-12);
    CHECK(largest_difference(came.log_normaliser + r.query_log_factors(q, 0.3), due.log_normaliser) <= 1e-12);
  }
}

TEST_CASE("key centring asks for no log-weights", "[reparametrisation]") {
  const Matrix<double> k = tokens(9, 1, 2);
  const auto r = key_centring(k);
  CHECK(r.key_log_weights(k, 0.3) == Vector<double>::Zero(9));
  CHECK(largest_difference(r.keys(k).colwise().mean(), RowVector<double>::Zero(kD)) <= 1e-14);
  CHECK(r.queries(k) == k);
}

TEST_CASE("composing is applying one after the other, and associative", "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 1), k = tokens(9, 1, 2);
  const auto kinds = all_kinds(q, k);
  for (const auto& [first_name, first] : kinds) {
    for (const auto& [second_name, second] : kinds) {
      CAPTURE(first_name, second_name);
      const auto both = first.then(second);
      CHECK(largest_difference(both.queries(q), second.queries(first.queries(q))) <= 1e-11);
      CHECK(largest_difference(both.keys(k), second.keys(first.keys(k))) <= 1e-11);
      const auto left = both.then(kinds[2].value), right = first.then(second.then(kinds[2].value));
      CHECK(largest_difference(left.queries(q), right.queries(q)) <= 1e-11);
      CHECK(largest_difference(left.key_log_weights(k, 0.3), right.key_log_weights(k, 0.3)) <= 1e-11);
      CHECK(largest_difference(left.query_log_factors(q, 0.3), right.query_log_factors(q, 0.3)) <= 1e-11);
    }
  }
}

TEST_CASE("balances give both sides the same second moments and are the least of their kind",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(40, 0, 0.3),
                       k = tokens(50, 1, -0.2) * (some(kD, kD) + Matrix<double>::Identity(kD, kD));
  const auto diagonal = diagonal_balance(q, k);
  const auto full = full_balance(q, k, 1e-12);
  CHECK(largest_difference(second_moment(diagonal.queries(q)).diagonal(),
                           second_moment(diagonal.keys(k)).diagonal()) <= 1e-12);
  CHECK(largest_difference(second_moment(full.queries(q)), second_moment(full.keys(k))) <= 1e-9);
  CHECK(mean_square(full, q, k) < mean_square(diagonal, q, k) - 0.1);
  CHECK(mean_square(diagonal, q, k) < mean_square(key_centring(Matrix<double>::Zero(1, kD)), q, k) - 0.1);
  for (Index l = 0; l < kD; ++l) {
    CAPTURE(l);
    Vector<double> psi = Vector<double>::Ones(kD);
    psi(l) = 1.01;
    CHECK(mean_square(diagonal.then(Reparametrisation::diagonal(psi)), q, k) > mean_square(diagonal, q, k));
    Matrix<double> m = Matrix<double>::Identity(kD, kD);
    m(l, (l + 1) % kD) = 0.01;
    CHECK(mean_square(full.then(Reparametrisation::linear(m)), q, k) > mean_square(full, q, k));
  }
}

TEST_CASE("a balance does not depend on the scale, and leaves dead coordinates alone",
          "[reparametrisation]") {
  Matrix<double> q = tokens(40, 0, 0.3), k = tokens(50, 1, -0.2);
  for (const double c : {1e-3, 1e3}) {
    CHECK(diagonal_balance(c * q, c * k).queries(q).isApprox(diagonal_balance(q, k).queries(q), 1e-12));
    CHECK(full_balance(c * q, c * k).queries(q).isApprox(full_balance(q, k).queries(q), 1e-9));
  }
  q.col(1).setZero();
  k.col(4).setZero();
  const auto balance = diagonal_balance(q, k);
  CHECK(balance.keys(k).col(1) == k.col(1));
  CHECK(balance.queries(q).col(4) == q.col(4));
  CHECK(balance.queries(q).allFinite());
  CHECK(full_balance(q, k).queries(q).allFinite());
  CHECK(full_balance(Matrix<double>::Zero(2, kD), Matrix<double>::Zero(2, kD)).queries(q).isApprox(q, 1e-12));
}

TEMPLATE_TEST_CASE("a reparametrised map has the features of the transformed vectors times their factors",
                   "[reparametrisation]", float, double) {
  using S = TestType;
  const Matrix<double> q = tokens(7, 0, 0.5), k = tokens(9, 1, 0.5);
  constexpr double kScale = 0.3;
  const double root = std::sqrt(kScale);
  const double bound = 500 * static_cast<double>(std::numeric_limits<S>::epsilon());
  for (const auto& [name, r] : all_kinds(q, k)) {
    CAPTURE(name);
    const auto check = [&, &r = r](const auto& map, double size) {
      const Reparametrised outer(map, r, kScale);
      CHECK(outer.dimension() == kD);
      CHECK(outer.feature_dimension() == map.feature_dimension());
      CHECK(outer.default_scale(kD) == kScale);
      const Matrix<S> phi_q = outer.query_features((root * q).template cast<S>());
      const Matrix<S> phi_k = outer.key_features((root * k).template cast<S>());
      const Vector<double> of_q = r.query_log_factors(q, kScale).array().exp(),
                           of_k = r.key_log_weights(k, kScale).array().exp();
      const Matrix<double> due_q =
          of_q.asDiagonal() *
          map.query_features((root * r.queries(q)).template cast<S>()).template cast<double>();
      const Matrix<double> due_k =
          of_k.asDiagonal() * map.key_features((root * r.keys(k)).template cast<S>()).template cast<double>();
      CHECK((phi_q.template cast<double>() - due_q).norm() <= size * bound * due_q.norm());
      CHECK((phi_k.template cast<double>() - due_k).norm() <= size * bound * due_k.norm());
    };
    check(PositiveRandomFeatures<S>(sample_projection<S>(12, kD, {.seed = kSeed})), 10);
    check(TaylorFeatures<S>(kD, 3), 1);
  }
}

TEST_CASE("attention with a reparametrised map is that of the transformed vectors with log-weights",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(70, 0, 0.5), k = tokens(70, 1, 0.5), v = some(70, 3);
  const double scale = inverse_sqrt_scale(kD);
  for (const auto& [name, r] : all_kinds(q, k)) {
    CAPTURE(name);
    const auto check = [&, &r = r](const auto& map) {
      LinearState state(map, 3);
      const Matrix<double> weights = r.key_log_weights(k, scale);
      Matrix<double> causal(70, 3);
      for (Index t = 0; t < 70; ++t) {
        state.append(r.keys(k).row(t), v.row(t), weights.row(t));
        causal.row(t) = state.read(r.queries(q).row(t));
      }
      const Reparametrised outer(map, r);
      CHECK(largest_difference(attention(outer, q, k, v), state.read(r.queries(q))) <= 1e-10);
      CHECK(largest_difference(attention(outer, q, k, v, {.causality = Causality::causal, .chunk = 16}),
                               causal) <= 1e-10);
    };
    check(random_features(16));
    check(TaylorFeatures<double>(kD, 2));
  }
}

TEST_CASE("a map of a reparametrised map is that of the composition", "[reparametrisation]") {
  const Matrix<double> q = tokens(20, 0, 0.5), k = tokens(20, 1, 0.5), v = some(20, 3);
  const auto kinds = all_kinds(q, k);
  const Reparametrised inner(random_features(16), kinds[2].value);
  CHECK(largest_difference(attention(Reparametrised(inner, kinds[0].value), q, k, v),
                           attention(Reparametrised(random_features(16), kinds[0].value.then(kinds[2].value)),
                                     q, k, v)) <= 1e-11);
}

TEST_CASE("reparametrised random features stay unbiased, at other scales than their own too",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 0.2), k = tokens(9, 1, 0.2);
  for (const auto& [name, r] : all_kinds(q, k)) {
    // Too large a variance.
    if (name == "diagonal" || name == "shift, diagonal, shift, linear, shift") continue;
    std::vector<double> estimates;
    for (std::uint64_t draw = 0; draw < 2000; ++draw) {
      // Its scale is 2, but the vectors are not times sqrt(2).
      const Reparametrised map(random_features(32, kSeed + draw), r, 2.0);
      const double product =
          map.query_features(q.row(0) / 2).row(0).dot(map.key_features(k.row(0) / 2).row(0));
      estimates.push_back(product / std::exp(q.row(0).dot(k.row(0)) / 4));
    }
    const Moments moments(estimates);
    CAPTURE(kSeed, name, moments.mean, moments.error);
    CHECK(std::abs(moments.mean - 1) <= 4 * moments.error);
    CHECK(moments.error < 0.2);
  }
}

TEST_CASE("to positive random features only the sum of the shifts counts", "[reparametrisation]") {
  const Matrix<double> q = tokens(20, 0, 0.5), k = tokens(20, 1, 0.5), v = some(20, 3);
  const Vector<double> a = some(kD, 1), b = some(kD, 1, -0.4), zero = Vector<double>::Zero(kD);
  const auto out = [&](const Vector<double>& of_q, const Vector<double>& of_k) {
    return attention(Reparametrised(random_features(16), Reparametrisation::shift(of_q, of_k)), q, k, v);
  };
  CHECK(largest_difference(out(a, b), out(zero, a + b)) <= 1e-12);
  CHECK(largest_difference(out(a, b), out(zero, b)) > 1e-3);
}

TEST_CASE("the error of random features falls where the keys have a large mean", "[reparametrisation]") {
  const Matrix<double> q = tokens(60, 0, 0.5) / 2, k = tokens(60, 1, 4) / 2, v = tokens(60, 2, 0);
  const Matrix<double> exact = attention(ExponentialKernel<double>(), q, k, v);
  const auto mean_error = [&](const Reparametrisation& r) {
    double sum = 0;
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
      const Reparametrised map(random_features(64, kSeed + draw), r);
      sum += relative_frobenius_error(attention(map, q, k, v), exact) / 20;
    }
    return sum;
  };
  const auto centred = centring(q, k);
  const double plain = mean_error(Reparametrisation::diagonal(Vector<double>::Ones(kD)));
  const double best = mean_error(centred.then(full_balance(centred.queries(q), centred.keys(k))));
  CAPTURE(kSeed, plain, mean_error(key_centring(k)), mean_error(centred), best);
  CHECK(mean_error(key_centring(k)) < 0.7 * plain);
  CHECK(mean_error(centred) < 0.7 * plain);
  CHECK(best < mean_error(centred));
}

TEST_CASE("wrong reparametrisations are rejected by name and size", "[reparametrisation]") {
  const Matrix<double> q = some(4, 3), k = some(5, 3);
  const auto three = key_centring(k), two = key_centring(k.leftCols(2));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_THROWS_AS(Reparametrisation::shift(q.row(0), k.row(0).head(2)), std::invalid_argument);
  REQUIRE_THROWS_WITH(Reparametrisation::shift(q.row(0), k.row(0).head(2)),
                      ContainsSubstring("size of b: got 2, expected 3 (size of a)"));
  REQUIRE_THROWS_WITH(Reparametrisation::shift(Vector<double>(0), Vector<double>(0)),
                      ContainsSubstring("dimension of the reparametrisation: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(Reparametrisation::shift(q.row(0), kNaN * k.row(0)), ContainsSubstring("not finite"));
  REQUIRE_THROWS_WITH(Reparametrisation::diagonal(Eigen::Vector3d(1, 0, 1)),
                      ContainsSubstring("psi(1): got 0"));
  REQUIRE_THROWS_WITH(Reparametrisation::diagonal(Eigen::Vector3d(1, 1, kNaN)),
                      ContainsSubstring("psi(2): got "));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(q), ContainsSubstring("columns of M: got 3, expected 4"));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(Matrix<double>(0, 0)), ContainsSubstring("rows of M: got 0"));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(Matrix<double>::Ones(3, 3)),
                      ContainsSubstring("M: singular"));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(Matrix<double>::Constant(3, 3, kNaN)),
                      ContainsSubstring("M: singular"));
  REQUIRE_THROWS_WITH(three.then(two),
                      ContainsSubstring("dimension of the next reparametrisation: got 2, expected 3"));
  REQUIRE_THROWS_WITH(
      three.keys(k.leftCols(2)),
      ContainsSubstring("columns of x: got 2, expected 3 (dimension of the reparametrisation)"));
  REQUIRE_THROWS_WITH(key_centring(k.topRows(0)), ContainsSubstring("rows of k: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(centring(q.topRows(0), k), ContainsSubstring("rows of q: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(diagonal_balance(q, k.leftCols(2)),
                      ContainsSubstring("columns of q: got 3, expected 2"));
  REQUIRE_THROWS_WITH(full_balance(q, k, 0), ContainsSubstring("ridge: got 0"));
  REQUIRE_THROWS_WITH(Reparametrised(random_features(4), three),
                      ContainsSubstring("dimension of the reparametrisation: got 3, expected 6"));
  REQUIRE_THROWS_WITH(Reparametrised(TaylorFeatures<double>(3, 2), three, -1.0),
                      ContainsSubstring("scale: got -1"));
}
