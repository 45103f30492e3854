// The regime of queries and keys: statistics by their definitions, and expectations that come true.
#include <phiattn/analysis/error.hpp>
#include <phiattn/analysis/regime.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;
using Positive = AnyFeatureMap<double, LogFeatureMapTag>;
using Signed = AnyFeatureMap<double, SignedFeatureMapTag>;

Matrix<double> gaussian(Index rows, Index cols, std::uint64_t stream, double size = 1) {
  const Philox random(kSeed, stream);
  Matrix<double> x(rows, cols);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = size * random.normal(static_cast<std::uint64_t>(i));
  return x;
}

Positive performer(Index m, Index d) {
  return PositiveRandomFeatures<double>(sample_projection<double>(m, d, {.seed = kSeed}));
}

Signed trigonometric(Index m, Index d) {
  return TrigonometricFeatures<double>(
      sample_projection<double>(m / 2, d, {.antithetic = false, .seed = kSeed}));
}

/// The row L1 error by attention itself, over all queries.
template <class F>
double measured(const F& map, const Matrix<double>& q, const Matrix<double>& k,
                const AttentionOptions& options) {
  return row_l1_error(attention_weights(map, q, k, options),
                      attention_weights(ExponentialKernel<double>(), q, k, options));
}

}  // namespace

TEST_CASE("the statistics of a regime are those of their definitions", "[regime]") {
  const Matrix<double> q = gaussian(23, 8, 1, 0.8), k = gaussian(31, 8, 2).array() + 0.3;
  for (const Causality causality : {Causality::none, Causality::causal}) {
    CAPTURE(kSeed, static_cast<int>(causality));
    const Regime regime(q, k, {.causality = causality, .scale = 0.7, .queries = 1000});
    const Matrix<double> weights =
        attention_weights(ExponentialKernel<double>(), q, k, {.causality = causality, .scale = 0.7});
    double sum = 0, difference = 0, variance = 0, in_sight = 0, uniform = 0;
    std::vector<double> effective;
    for (Index i = 0; i < 23; ++i) {
      const Index sight = causality == Causality::causal ? i + 9 : 31;
      in_sight += static_cast<double>(sight) / 23;
      double mean = 0, square = 0, entropy = 0;
      for (Index j = 0; j < 31; ++j) {
        sum += 0.7 * (q.row(i) + k.row(j)).squaredNorm() / (23 * 31);
        difference += 0.7 * (q.row(i) - k.row(j)).squaredNorm() / (23 * 31);
        if (j >= sight) continue;
        const double score = 0.7 * q.row(i).dot(k.row(j));
        mean += score / static_cast<double>(sight);
        square += score * score / static_cast<double>(sight);
        entropy -= weights(i, j) * std::log(weights(i, j));
        uniform += std::abs(weights(i, j) - 1 / static_cast<double>(sight)) / 23;
      }
      variance += (square - mean * mean) / 23;
      effective.push_back(std::exp(entropy));
    }
    std::sort(effective.begin(), effective.end());
    CHECK(regime.query_norm() == Approx(std::sqrt(0.7 * q.squaredNorm() / 23)));
    CHECK(regime.key_norm() == Approx(std::sqrt(0.7 * k.squaredNorm() / 31)));
    CHECK(regime.sum_norm() == Approx(std::sqrt(sum)));
    CHECK(regime.difference_norm() == Approx(std::sqrt(difference)));
    CHECK(regime.score_spread() == Approx(std::sqrt(variance)));
    CHECK(regime.keys_in_sight() == Approx(in_sight));
    CHECK(regime.effective_keys() == Approx(effective[11]));
    CHECK(regime.uniform_row_l1() == Approx(uniform));
  }
}

TEST_CASE("if all queries are looked at, expectations are what attention does", "[regime]") {
  const Matrix<double> q = gaussian(40, 16, 1, 0.6), k = gaussian(50, 16, 2, 0.6);
  for (const Causality causality : {Causality::none, Causality::causal}) {
    CAPTURE(kSeed, static_cast<int>(causality));
    const Regime regime(q, k, {.causality = causality, .queries = 40});
    const AttentionOptions options{.causality = causality};
    CHECK(regime.expect(performer(64, 16)).row_l1 == Approx(measured(performer(64, 16), q, k, options)));
    const auto map = trigonometric(64, 16);
    CHECK(regime.expect(map).row_l1 == Approx(measured(map, q, k, options)));
    // A map that looks at positions, and has a scale of its own.
    const Signed cosformer = CosformerFeatures<double>(16, 64);
    CHECK(regime.expect(cosformer).row_l1 == Approx(measured(cosformer, q, k, options)));
  }
}

TEST_CASE("a few queries tell what to expect of many", "[regime]") {
  // d = 64, entries of size 0.25, 0.5 and 1: within reach, at the edge, out of reach.
  struct Due {
    double size, uniform;
    Verdict performer, trigonometric;
  };
  for (const Due& due : {Due{0.25, 0.050, Verdict::useful, Verdict::useful},
                         Due{0.5, 0.197, Verdict::useful, Verdict::useless},
                         Due{1, 0.756, Verdict::useless, Verdict::breaks}}) {
    CAPTURE(kSeed, due.size);
    const Matrix<double> q = gaussian(512, 64, 1, due.size), k = gaussian(512, 64, 2, due.size);
    const Regime regime(q, k);
    const Expectation positive = regime.expect(performer(256, 64));
    const Expectation cosines = regime.expect(trigonometric(256, 64));
    CHECK(positive.verdict == due.performer);
    CHECK(cosines.verdict == due.trigonometric);
    CHECK((cosines.nonpositive_rows > 0.2) == (due.size == 1));
    CHECK(positive.nonpositive_rows == 0);
    CHECK(regime.uniform_row_l1() == Approx(due.uniform).epsilon(0.05));
    CHECK(positive.row_l1 == Approx(measured(performer(256, 64), q, k, {})).epsilon(0.1));
  }
}

TEST_CASE("extremes of a regime: equal keys, one key, no key in sight, norms beyond exp", "[regime]") {
  const Matrix<double> q = gaussian(9, 4, 1);
  const Regime equal(q, Matrix<double>::Ones(7, 4));
  CHECK(equal.score_spread() < 1e-14);
  CHECK(equal.effective_keys() == Approx(7));
  CHECK(equal.uniform_row_l1() < 1e-14);
  const Regime one(q, gaussian(1, 4, 2));
  CHECK(one.effective_keys() == 1);
  CHECK(one.expect(performer(8, 4)).row_l1 < 1e-14);
  // Of 9 queries and 2 keys, 7 come before all keys.
  const Regime late(q, gaussian(2, 4, 2), {.causality = Causality::causal});
  CHECK(late.keys_in_sight() == Approx(1.5));
  const Regime far(gaussian(9, 4, 1, 100), gaussian(11, 4, 2, 100));
  CHECK(far.effective_keys() < 1.01);
  CHECK(std::isfinite(far.expect(performer(64, 4)).row_l1));
  CHECK(far.expect(performer(64, 4)).row_l1 <= 2 + 1e-12);
}

TEST_CASE("a regime refuses what it cannot look at", "[regime]") {
  const Matrix<double> q = gaussian(3, 4, 1);
  CHECK_THROWS_WITH(Regime(q, gaussian(3, 5, 2)), ContainsSubstring("columns of q: got 4, expected 5"));
  CHECK_THROWS_WITH(Regime(q, Matrix<double>(0, 4)), ContainsSubstring("rows of k: got 0"));
  CHECK_THROWS_WITH(Regime(q, q, {.queries = 0}), ContainsSubstring("queries: got 0"));
  CHECK_THROWS_WITH(Regime(q, q, {.scale = -1}), ContainsSubstring("scale: got -1"));
  CHECK_THROWS_WITH(Regime(q, q).expect(performer(8, 5)),
                    ContainsSubstring("dimension of the feature map: got 5"));
}
