// Modifiers that are refused, before anything is written.
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/with.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const ExponentialKernel<float> softmax;

/// What a call of 4 queries and 5 keys says; it writes nothing.
template <class K>
std::string refusal(const K& kernel, const AttentionOptions& options = {}) {
  const Matrix<float> q = Matrix<float>::Ones(4, 3), k = Matrix<float>::Ones(5, 3),
                      v = Matrix<float>::Ones(5, 2);
  Matrix<float> out = Matrix<float>::Constant(4, 2, 7);
  Partial<float> partial;
  try {
    attention(kernel, q, k, v, out, options);
  } catch (const std::invalid_argument& error) {
    CHECK(out == Matrix<float>::Constant(4, 2, 7));
    CHECK_THROWS_AS(attention(kernel, q, k, v, partial, options), std::invalid_argument);
    CHECK(partial.out.size() == 0);
    CHECK_THROWS_AS(attention_weights(kernel, q, k, options), std::invalid_argument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("modifiers out of range are refused by name") {
  CHECK_THROWS_WITH(with(softmax, SlidingWindow{-1, 0}), Catch::Contains("left of SlidingWindow: got -1"));
  CHECK_THROWS_WITH(with(softmax, SlidingWindow{0, -2}), Catch::Contains("right of SlidingWindow: got -2"));
  CHECK_THROWS_WITH(with(softmax, PrefixCausal{-1}), Catch::Contains("n of PrefixCausal"));
  for (const double cap : {0.0, -1.0, kInfinity, -kInfinity}) {
    CHECK_THROWS_WITH(with(softmax, SoftCap{cap}), Catch::Contains("cap of SoftCap"));
  }
  for (const double slope : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(with(softmax, Alibi{slope}), Catch::Contains("slope of Alibi"));
  }
  CHECK_THROWS_WITH(with(softmax, Sink{kInfinity}), Catch::Contains("logit of Sink"));
  CHECK_THROWS_WITH(with(softmax, SoftCap{1}, SoftCap{2}), Catch::Contains("SoftCap: got two"));
  CHECK_THROWS_WITH(Forgetting(Vector<double>::Constant(3, -kInfinity)),
                    Catch::Contains("log_decay of Forgetting"));
}

TEST_CASE("matrices and lists must fit the call") {
  CHECK(refusal(with(softmax, Bias(Matrix<double>::Zero(4, 5)))).empty());
  CHECK_THAT(refusal(with(softmax, Bias(Matrix<double>::Zero(5, 5)))),
             Catch::Contains("rows of Bias: got 5, expected 4"));
  CHECK_THAT(refusal(with(softmax, Bias(Matrix<double>::Zero(4, 4)))),
             Catch::Contains("columns of Bias: got 4"));
  CHECK_THAT(refusal(with(softmax, BooleanMask(Matrix<bool>::Constant(4, 6, true)))),
             Catch::Contains("columns of BooleanMask: got 6, expected 5"));
  CHECK_THAT(refusal(with(softmax, Documents(std::vector<int>{1, 2}))),
             Catch::Contains("size of Documents: got 2"));
  CHECK_THAT(refusal(with(softmax, Forgetting(Vector<double>::Zero(9)))),
             Catch::Contains("log_decay of Forgetting: got 9"));
}

TEST_CASE("options that a call would not heed are refused") {
  CHECK_THAT(refusal(softmax, {.alignment = Alignment::first}), Catch::Contains("alignment"));
  CHECK_THAT(
      refusal(softmax, {.causality = Causality::causal, .query_offset = 1, .alignment = Alignment::first}),
      Catch::Contains("alignment"));
}

TEST_CASE("a cache does not outgrow its matrices and lists") {
  const Matrix<float> x = Matrix<float>::Ones(3, 2);
  const auto check = [&](const auto& kernel, const char* what) {
    KeyValueCache cache(kernel, 2);
    cache.advance(x, x, x);
    CHECK_THROWS_WITH(cache.append(x, x), Catch::Contains(what));
    CHECK_THROWS_WITH(cache.append(x.topRows(1), x.topRows(1), {.first = 9}), Catch::Contains(what));
    CHECK_THROWS_WITH(cache.append(x.topRows(1), x.topRows(1), {.first = -1}), Catch::Contains(what));
    CHECK(cache.size() == 3);
    CHECK(cache.read(x.topRows(1), 2).allFinite());
  };
  check(with(softmax, Bias(Matrix<double>::Zero(4, 4))), "columns of Bias");
  check(with(softmax, BooleanMask(Matrix<int>::Ones(4, 4))), "columns of BooleanMask");
  check(with(softmax, Documents(std::vector<int>{1, 1, 2, 2})), "size of Documents");
  check(with(softmax, Forgetting(Vector<double>::Zero(4))), "log_decay of Forgetting");

  KeyValueCache cache(with(softmax, Bias(Matrix<double>::Zero(4, 4))), 2);
  cache.append(x, x);
  CHECK_THROWS_WITH(cache.read(x), Catch::Contains("rows of Bias"));
  CHECK_THROWS_WITH(cache.read(x, -1), Catch::Contains("rows of Bias"));
}

TEST_CASE("log-weights with the keys and beside them are one too many") {
  const Matrix<float> x = Matrix<float>::Ones(3, 2);
  const Vector<float> w = Vector<float>::Zero(3);
  KeyValueCache cache(softmax, 2);
  CHECK_THROWS_WITH(cache.append(weighted(x, w), x, {.log_weights = w}), Catch::Contains("log_weights"));
  CHECK_THROWS_WITH(cache.advance(x, weighted(x, w), x, {.log_weights = w}), Catch::Contains("log_weights"));
  CHECK_THROWS_WITH(attention(softmax, x, weighted(x, w.head(2)), x), Catch::Contains("size of log_weights"));
  CHECK(cache.size() == 0);
}

TEST_CASE("caches with other modifiers do not merge") {
  const Matrix<float> x = Matrix<float>::Ones(3, 2);
  KeyValueCache a(with(softmax, Alibi{0.5}), 2), b(with(softmax, Alibi{0.25}), 2),
      c(with(softmax, Alibi{0.5}), 2);
  a.append(x, x), b.append(x, x), c.append(x, x);
  CHECK_THROWS_WITH(a.merge(b), Catch::Contains("differ in what modifies their kernel"));
  a.merge(c);
  CHECK(a.size() == 6);
}

TEST_CASE("several sinks add up") {
  const Matrix<float> x = Matrix<float>::Ones(3, 2);
  const Matrix<float> two = attention(with(softmax, Sink{1}, Sink{2}), x, x, x);
  const Matrix<float> sum = attention(with(softmax, Sink{std::log(std::exp(1.0) + std::exp(2.0))}), x, x, x);
  CHECK((two - sum).cwiseAbs().maxCoeff() < 1e-6F);
}
