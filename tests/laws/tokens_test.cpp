// What comes with tokens: log-weights in a causal call, and positions that are given instead of counted.

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/memories/window.hpp>

#include <algorithm>
#include <limits>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 130;
constexpr Index kDimension = 5;
constexpr Index kValues = 3;

/// Log-weights of either sign; every fifth key does not exist, and holds what must not matter.
template <class S>
Problem<S> weighted_problem() {
  auto problem =
      gaussian_problem<S>({kTokens, kTokens, kDimension, kValues}, {.causality = Causality::causal});
  problem.log_weights = gaussian<S>(kTokens, 1, kSeed + 3, 2);
  for (Index j = 0; j < kTokens; j += 5) problem.log_weights(j) = -std::numeric_limits<S>::infinity();
  return problem;
}

template <class S>
Problem<S> positive_problem() {
  auto problem = gaussian_problem<S>({kTokens, kTokens, kDimension, kValues});
  problem.q.array() += S(0.7);
  problem.k.array() += S(0.7);
  return problem;
}

template <class S>
phiattn::LinearState<phiattn::CosformerFeatures<S>> cosformer_state() {
  return {phiattn::CosformerFeatures<S>(kDimension, 300), kValues};
}

}  // namespace

TEMPLATE_TEST_CASE("log-weights go through a causal call as they do through append", "[laws]", float,
                   double) {
  const auto problem = weighted_problem<TestType>();
  auto padded = problem;
  for (Index j = 0; j < kTokens; j += 5) {
    padded.k.row(j).setConstant(std::numeric_limits<TestType>::quiet_NaN());
    padded.v.row(j).setConstant(std::numeric_limits<TestType>::infinity());
  }
  const auto& [q, k, v, options, log_weights] = padded;
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, problem);
    for (const Index block : {1, 7, 64, 130}) {
      CAPTURE(similarity.name, kSeed, block);
      auto memory = similarity.memory(kDimension, kValues, {.chunk = 16});
      Matrix<TestType> out(kTokens, kValues);
      for (Index t = 0; t < kTokens; t += block) {
        const Index n = std::min(block, kTokens - t);
        memory.advance(q.middleRows(t, n), k.middleRows(t, n), v.middleRows(t, n), out.middleRows(t, n),
                       {.log_weights = log_weights.segment(t, n)});
      }
      CHECK(error(out, due) <= 1);
      CHECK(memory.size() == kTokens);
    }
  }
}

TEMPLATE_TEST_CASE("parts of a sequence that are told where they stand merge to the whole", "[laws]", float,
                   double) {
  const auto problem = positive_problem<TestType>();
  const auto& [q, k, v, options, none] = problem;
  auto whole = cosformer_state<TestType>();
  whole.append(k, v);
  for (const Index split : {1, 64, 129}) {
    CAPTURE(kSeed, split);
    auto first = cosformer_state<TestType>(), second = first;
    first.append(k.topRows(split), v.topRows(split));
    second.append(k.bottomRows(kTokens - split), v.bottomRows(kTokens - split), {.first = split});
    auto backwards = second;
    first.merge(second);
    CHECK(phiattn::relative_frobenius_error(first.read(q), whole.read(q)) < 1e-5);
    backwards.merge(cosformer_state<TestType>());
    // What comes next stands behind the last of both.
    auto next = whole;
    const Matrix<TestType> due = next.advance(q, k, v);
    CHECK(phiattn::relative_frobenius_error(first.advance(q, k, v), due) < 1e-5);
  }
}

TEMPLATE_TEST_CASE("a window hands the positions of its tokens on, gaps and all", "[laws]", float, double) {
  const auto problem = positive_problem<TestType>();
  const auto& [q, k, v, options, none] = problem;
  const auto run = [&, &q = q, &k = k, &v = v](auto memory, Index block) {
    Matrix<TestType> out(kTokens, kValues);
    memory.append(k.topRows(10), v.topRows(10), {.first = 3});
    for (Index t = 10; t < kTokens; t += block) {
      const Index n = std::min(block, kTokens - t);
      // Every block begins seven positions further on.
      memory.advance(q.middleRows(t, n), k.middleRows(t, n), v.middleRows(t, n), out.middleRows(t, n),
                     {.first = t + t / block * 7});
    }
    out.topRows(10) = memory.read(q.topRows(10), 2 * kTokens);
    return out;
  };
  for (const Index block : {1, 8, 40}) {
    CAPTURE(kSeed, block);
    const auto state = cosformer_state<TestType>();
    // Before nothing a window of any length is not there.
    CHECK(phiattn::relative_frobenius_error(run(phiattn::Windowed(0, state), block), run(state, block)) <
          1e-5);
    // Two windows in a row are one.
    const phiattn::AttentionOptions scale{.scale = 1};
    CHECK(phiattn::relative_frobenius_error(
              run(phiattn::Windowed(5, phiattn::Windowed(4, state), scale), block),
              run(phiattn::Windowed(9, state), block)) < 1e-5);
  }
}
