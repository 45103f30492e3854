// Feature maps of reparametrised queries and keys: their features, the attention with them, what it gains.

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/reparametrised.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"
#include "support/reparametrisations.hpp"

using namespace phiattn;
using namespace reparametrisations;

static_assert(LogFeatureMap<Reparametrised<PositiveRandomFeatures<float>>>);
static_assert(SignedFeatureMap<Reparametrised<TaylorFeatures<double>>>);
static_assert(LogFeatureMap<Reparametrised<Reparametrised<PositiveRandomFeatures<double>>>>);

namespace {

PositiveRandomFeatures<double> random_features(Index m, std::uint64_t seed = kSeed) {
  return PositiveRandomFeatures<double>(sample_projection<double>(m, kD, {.seed = seed}));
}

}  // namespace

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

TEST_CASE("a reparametrisation of another dimension, or a wrong scale, is rejected by name and size",
          "[reparametrisation]") {
  const auto three = key_centring(some(5, 3));
  REQUIRE_THROWS_WITH(Reparametrised(random_features(4), three),
                      ContainsSubstring("dimension of the reparametrisation: got 3, expected 6"));
  REQUIRE_THROWS_WITH(Reparametrised(TaylorFeatures<double>(3, 2), three, -1.0),
                      ContainsSubstring("scale: got -1"));
}
