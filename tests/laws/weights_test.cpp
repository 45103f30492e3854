// What attention does to values: it is linear in them, with weights that sum to 1.

#include <numeric>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 65;
constexpr Index kDimension = 5;
constexpr Shape kShape{kTokens, kTokens, kDimension, 3};

/// Both kinds of attention over kTokens tokens, in chunks.
template <class S>
std::vector<Problem<S>> problems() {
  return {gaussian_problem<S>(kShape, {.chunk = 16}),
          gaussian_problem<S>(kShape, {.causality = Causality::causal, .chunk = 16})};
}

}  // namespace

TEMPLATE_TEST_CASE("values of 1 give 1", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (auto problem : problems<TestType>()) {
      CAPTURE(similarity.name, kSeed, problem.options.causality);
      problem.v.setOnes();
      Expected due = expected(similarity, problem);
      due.out.setOnes();
      CHECK(error(attend(similarity, problem), due) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("unit vectors as values give the weights: they sum to 1, and hidden keys have exactly 0",
                   "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (auto problem : problems<TestType>()) {
      CAPTURE(similarity.name, kSeed, problem.options.causality);
      Expected due = expected(similarity, problem);
      const Matrix<TestType> weights = similarity.weights(problem.q, problem.k, problem.options);
      CHECK(weight_error(weights, due) <= 1);
      problem.v = Matrix<TestType>::Identity(kTokens, kTokens);
      CHECK(weight_error(attend(similarity, problem), due) <= 1);

      due.out.setOnes(kTokens, 1);
      due.largest_value = 1;
      CHECK(error<TestType>(weights.rowwise().sum(), due) <= 1);
      if (problem.options.causality == Causality::causal) {
        CHECK((weights.template triangularView<Eigen::StrictlyUpper>().toDenseMatrix().array() == 0).all());
      }
    }
  }
}

TEMPLATE_TEST_CASE("positive similarities have no negative weight", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    if (!similarity.positive) continue;
    for (const auto& problem : problems<TestType>()) {
      CAPTURE(similarity.name, kSeed, problem.options.causality);
      CHECK(similarity.weights(problem.q, problem.k, problem.options).minCoeff() >= 0);
    }
  }
}

TEMPLATE_TEST_CASE("attention is linear in the values", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (auto problem : problems<TestType>()) {
      CAPTURE(similarity.name, kSeed, problem.options.causality);
      const Matrix<TestType> v = problem.v;
      const Matrix<TestType> w = gaussian<TestType>(v.rows(), v.cols(), kSeed + 5);
      const Matrix<TestType> out_v = attend(similarity, problem);
      problem.v = w;
      const Matrix<TestType> out_w = attend(similarity, problem);
      problem.v = 2 * v - 3 * w;
      Expected due = expected(similarity, problem);
      due.largest_value = static_cast<Real>(2 * v.cwiseAbs().maxCoeff() + 3 * w.cwiseAbs().maxCoeff());
      CHECK(distance<TestType>(attend(similarity, problem), 2 * out_v - 3 * out_w, due) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("full attention does not depend on the order of the keys", "[laws]", float, double) {
  std::vector<Index> order(static_cast<std::size_t>(kTokens));
  std::iota(order.begin(), order.end(), Index{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
  const auto problem = problems<TestType>().front();
  auto shuffled = problem;
  shuffled.k = problem.k(order, Eigen::all);
  shuffled.v = problem.v(order, Eigen::all);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    CHECK(error(attend(similarity, shuffled), expected(similarity, problem)) <= 1);
  }
}

TEMPLATE_TEST_CASE("softmax attention does not change when one vector is added to all keys", "[laws]", float,
                   double) {
  const auto& softmax = all_cases<TestType>().front();
  REQUIRE(softmax.name == "exponential kernel");
  for (const auto& problem : problems<TestType>()) {
    CAPTURE(kSeed, problem.options.causality);
    auto moved = problem;
    moved.k.rowwise() += gaussian<TestType>(1, kDimension, kSeed + 6, 30).row(0);
    CHECK(distance(attend(softmax, moved), attend(softmax, problem), expected(softmax, moved)) <= 1);
  }
}
