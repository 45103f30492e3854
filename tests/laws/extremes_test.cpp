// Scores far beyond what an exponential can hold: results stay finite and as accurate as the scores are.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 70;
constexpr Index kDimension = 4;
constexpr Shape kShape{kTokens, kTokens, kDimension, 2};

/// Inputs whose largest |q_i . k_j| scale is `score`.
template <class S>
Problem<S> problem_of_score(double score, const AttentionOptions& options) {
  auto problem = gaussian_problem<S>(kShape, options);
  const double largest = static_cast<double>((problem.q * problem.k.transpose()).cwiseAbs().maxCoeff());
  const auto factor = static_cast<S>(std::sqrt(score / largest / options.scale.value_or(1)));
  problem.q *= factor;
  problem.k *= factor;
  return problem;
}

template <class S>
bool finite(const Partial<S>& partial) {
  return partial.out.allFinite() && partial.log_normaliser.allFinite();
}

/// How many rows have a tolerance that means something.
template <class S>
Index sharp_rows(const Expected& expected) {
  return std::count_if(expected.rows.begin(), expected.rows.end(),
                       [&](Index i) { return epsilon<S>(expected.condition(i)) < 0.05; });
}

/// How the norms of the keys go.
struct Pattern {
  std::string name;
  std::function<double(Index t)> norm;
};

/// Keys each of which raises the log-scale of features by some 100: those of exp(omega . k - |k|^2/2) as |k| falls,
/// those of elu + 1 as coordinates rise from far below 0, those of |k|^n as |k| multiplies.
const std::vector<Pattern>& staircases() {
  static const std::vector<Pattern> all{
      {"|k|^2/2 falls by 100",
       [](Index t) { return std::sqrt(200.0 * static_cast<double>(kTokens - 1 - t)); }},
      {"|k|^2/2 falls by 5", [](Index t) { return std::sqrt(10.0 * static_cast<double>(kTokens - 1 - t)); }},
      {"|k| falls by 100", [](Index t) { return 100.0 * static_cast<double>(kTokens - 1 - t); }},
      {"|k| rises by 100", [](Index t) { return 100.0 * static_cast<double>(t); }},
      {"|k| rises by e^20, twice", [](Index t) { return std::exp(t < 30   ? 0.0
                                                                 : t < 50 ? 20.0
                                                                          : 40.0); }},
      {"the last key is huge", [](Index t) { return t < kTokens - 1 ? 1.0 : 1e18; }}};
  return all;
}

/// Queries of norm 1 and keys of the norms of a pattern, all coordinates positive or, for keys, all negative.
template <class S>
Problem<S> staircase_problem(const Pattern& pattern, bool negative) {
  auto problem = gaussian_problem<S>(kShape, {.causality = Causality::causal, .scale = 1}, kSeed, 1);
  problem.q = (problem.q.array().abs() + S(0.1)).matrix().rowwise().normalized().eval();
  problem.k = (problem.k.array().abs() + S(0.1)).matrix().rowwise().normalized().eval();
  for (Index t = 0; t < kTokens; ++t) {
    problem.k.row(t) *= static_cast<S>(negative ? -pattern.norm(t) : pattern.norm(t));
  }
  return problem;
}

}  // namespace

TEMPLATE_TEST_CASE("scores up to 1e4 are no harder than their rounding", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const double score : {1e2, 1e3, 1e4}) {
      for (const Causality causality : {Causality::none, Causality::causal}) {
        for (const Index chunk : {7, 128}) {
          CAPTURE(similarity.name, kSeed, score, causality, chunk);
          const auto problem =
              problem_of_score<TestType>(score, {.causality = causality, .scale = 1, .chunk = chunk});
          const Matrix<TestType> out = attend(similarity, problem);
          const Expected due = expected(similarity, problem);
          CHECK(out.allFinite());
          CHECK(error(out, due) <= 1);
          if (similarity.positive) CHECK(sharp_rows<TestType>(due) > kTokens / 2);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "log_normaliser is finite and accurate for scores up to 1e4, and partial results still combine", "[laws]",
    float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const double score : {1e2, 1e4}) {
      CAPTURE(similarity.name, kSeed, score);
      const auto problem = problem_of_score<TestType>(score, {.scale = 1});
      const auto& [q, k, v, options, none] = problem;
      const Expected due = expected(similarity, problem);
      auto left = similarity.memory(kDimension, 2, options);
      auto right = left;
      left.append(k.topRows(33), v.topRows(33));
      right.append(k.bottomRows(kTokens - 33), v.bottomRows(kTokens - 33));
      const auto combined = combine(left.read_partial(q), right.read_partial(q));
      left.merge(right);
      for (const auto& partial : {combined, left.read_partial(q)}) {
        CHECK(finite(partial));
        CHECK(error(partial, due) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("an early causal row does not drown under the scale of a later key", "[laws]", float,
                   double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Pattern& pattern : staircases()) {
      for (const bool negative : {false, true}) {
        if (negative && !similarity.positive) continue;  // cancels
        for (const Index chunk : {16, 128}) {
          CAPTURE(similarity.name, kSeed, pattern.name, negative, chunk);
          auto problem = staircase_problem<TestType>(pattern, negative);
          problem.options.chunk = chunk;
          const Matrix<TestType> out = attend(similarity, problem);
          CHECK(out.allFinite());
          CHECK(error(out, expected(similarity, problem)) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("a random walk of growing steps stays accurate, read as it grows and at its end", "[laws]",
                   float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const double growth : {1.05, 1.2}) {
      CAPTURE(similarity.name, kSeed, growth);
      auto problem = gaussian_problem<TestType>(kShape, {.causality = Causality::causal, .scale = 1});
      auto& [q, k, v, options, none] = problem;
      for (Index t = 1; t < kTokens; ++t) {
        const auto step = static_cast<TestType>(std::pow(growth, static_cast<double>(t)));
        k.row(t) = (k.row(t - 1) + step * k.row(t)).eval();
        if (!similarity.positive) q.row(t) = k.row(t) / k.row(t).norm();
      }
      auto memory = similarity.memory(kDimension, 2, options);
      const Matrix<TestType> out = memory.advance(q, k, v);
      CHECK(out.allFinite());
      CHECK(error(out, expected(similarity, problem)) <= 1);

      problem.options.causality = Causality::none;
      const auto partial = memory.read_partial(q);
      CHECK(finite(partial));
      CHECK(error(partial, expected(similarity, problem)) <= 1);
    }
  }
}
