// cosFormer: its weights by position, within the horizon and beyond. Every way to run it is in laws/positions_test.cpp.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/cosformer.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

/// One query at position `first`, and `n` keys, all of them 1.
Matrix<double> weights(const CosformerFeatures<double>& map, Index n, Index first) {
  return attention_weights(map, Matrix<double>::Ones(1, map.dimension()),
                           Matrix<double>::Ones(n, map.dimension()), {.query_offset = first});
}

}  // namespace

TEST_CASE("weights of equal keys go as cos(pi (i - j) / (2M))", "[cosformer]") {
  const Index M = 9, n = 40;
  const CosformerFeatures<double> map(3, M);
  CHECK(map.feature_dimension() == 6);
  for (const Index i : {0, 8, 9, 30}) {
    const Matrix<double> w = weights(map, n, i);
    for (Index j = 0; j < n; ++j) {
      CAPTURE(i, j);
      const double cosine =
          std::cos(std::numbers::pi * static_cast<double>(i - j) / (2 * static_cast<double>(M)));
      CHECK(w(j) / w(i) == Approx(cosine).margin(1e-13));
      // Not negative within M, and from there up to 3M not positive.
      if (std::abs(i - j) <= M) CHECK(w(j) / w(i) >= -1e-14);
      if (std::abs(i - j) >= M && std::abs(i - j) <= 3 * M) CHECK(w(j) / w(i) <= 1e-14);
    }
  }
}

TEST_CASE("a billion tokens on, the position is as exact as at the start", "[cosformer]") {
  const CosformerFeatures<double> map(3, 1000);
  const Matrix<double> x = Matrix<double>::Ones(1, 3);
  for (const Index position : {Index{0}, Index{1}, Index{777}}) {
    const Index far = Index{4000} * 1'000'000'000'000;
    CHECK(map.key_features(x, far + position) == map.key_features(x, position));
  }
}

TEST_CASE("a query of no positive coordinate gets 0 and one of none in common with its keys is reported",
          "[cosformer]") {
  const CosformerFeatures<double> map(2, 10);
  Matrix<double> q(3, 2), k(2, 2), out(3, 2);
  q << -1, -2, 1, -1, 0, 0;
  k << -1, -1, -1, 2;
  const Matrix<double> v = Matrix<double>::Ones(2, 2);
  const AttentionStatus status = attention(map, q, k, v, out);
  CHECK(out.row(0).isZero(0));
  CHECK(out.row(2).isZero(0));
  CHECK(status.nonpositive_rows == 1);
  CHECK(status.first_nonpositive_row == 1);
}

TEMPLATE_TEST_CASE("sizes of tokens do not overflow, and go to the log-scale", "[cosformer]", float, double) {
  using S = TestType;
  const CosformerFeatures<S> map(2, 10);
  Matrix<S> x(4, 2);
  x << std::numeric_limits<S>::max(), 1, std::numeric_limits<S>::min(), -1, -1, -1, 1,
      std::numeric_limits<S>::quiet_NaN();
  Matrix<S> features(4, 4);
  Vector<S> log_scale(4);
  map.features(Side::queries, x, 0, {features, log_scale});
  CHECK(features(0, 0) == 1);
  CHECK(features(1, 0) == static_cast<S>(std::cos(std::numbers::pi / 20)));
  CHECK(log_scale(0) == std::log(std::numeric_limits<S>::max()));
  CHECK(log_scale(1) == std::log(std::numeric_limits<S>::min()));
  CHECK(features.row(2).isZero(0));
  CHECK(features.row(3).array().isNaN().all());
}

TEST_CASE("cosFormer refuses no dimension and no horizon", "[cosformer]") {
  CHECK_THROWS_WITH(CosformerFeatures<float>(0, 4),
                    ContainsSubstring("dimension d") && ContainsSubstring("0"));
  CHECK_THROWS_WITH(CosformerFeatures<float>(4, 0), ContainsSubstring("M of") && ContainsSubstring("0"));
}
