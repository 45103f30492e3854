// What comes with tokens: log-weights in a causal call, and positions that are given instead of counted.

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <algorithm>
#include <functional>
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
      CHECK(memory.size() == kTokens - kTokens / 5);
    }
  }
}

TEMPLATE_TEST_CASE("padding is to drop the tokens, before, inside and behind a window", "[laws]", float,
                   double) {
  using S = TestType;
  constexpr S kNot = -std::numeric_limits<S>::infinity();
  // Which tokens do not exist: alternate ones, runs, the first, the last, all but one, all.
  const auto patterns = std::vector<std::function<bool(Index)>>{
      [](Index j) { return j % 2 == 0; },       [](Index j) { return j / 9 % 2 == 1; },
      [](Index j) { return j < 40; },           [](Index j) { return j >= 90; },
      [](Index j) { return j != kTokens / 2; }, [](Index) { return true; },
      [](Index j) { return j % 13 < 11; }};
  const auto problem = positive_problem<S>();
  const auto check_padding = [&](const auto& empty) {
    for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
      const auto& missing = patterns[pattern];
      auto [q, k, v, options, weights] = problem;
      q = q.cwiseAbs();  // else a single key may share no feature with a query
      k = k.cwiseAbs();
      weights = gaussian<S>(kTokens, 1, kSeed + 3);
      for (Index j = 0; j < kTokens; ++j) {
        if (!missing(j)) continue;
        weights(j) = kNot;
        k.row(j).setConstant(std::numeric_limits<S>::quiet_NaN());
        v.row(j).setConstant(std::numeric_limits<S>::infinity());
      }
      // Token by token: those that exist advance, the others only read, beside the last that exists.
      Matrix<S> due(kTokens, kValues);
      auto dropped = empty;
      Index count = 0;
      for (Index t = 0; t < kTokens; ++t) {
        if (missing(t)) {
          due.row(t) = dropped.read(q.row(t), std::max<Index>(count - 1, 0));
        } else {
          dropped.append(k.row(t), v.row(t), weights.segment(t, 1));
          due.row(t) = dropped.read(q.row(t), count++);
        }
      }
      for (const Index block : {1, 6, 50, 130}) {
        CAPTURE(kSeed, pattern, block);
        auto advanced = empty, appended = empty;
        Matrix<S> out(kTokens, kValues);
        for (Index t = 0; t < kTokens; t += block) {
          const Index n = std::min(block, kTokens - t);
          advanced.advance(q.middleRows(t, n), k.middleRows(t, n), v.middleRows(t, n), out.middleRows(t, n),
                           {.log_weights = weights.segment(t, n)});
          appended.append(k.middleRows(t, n), v.middleRows(t, n), weights.segment(t, n));
        }
        const double tolerance = std::is_same_v<S, float> ? 2e-5 : 1e-12;
        CHECK(phiattn::maximal_error(out, due) < tolerance);
        CHECK(phiattn::maximal_error(advanced.read(q, count), dropped.read(q, count)) < tolerance);
        CHECK(phiattn::maximal_error(appended.read(q, count), dropped.read(q, count)) < tolerance);
        CHECK(advanced.size() == count);
        CHECK(appended.size() == count);
      }
    }
  };
  const auto plain = phiattn::Reparametrisation::shift(phiattn::Vector<double>::Zero(kDimension),
                                                       phiattn::Vector<double>::Zero(kDimension));
  const phiattn::Matrix<double> centres = gaussian<double>(6, kDimension, kSeed + 9);
  const phiattn::ClusterMemory<S> clusters(centres, plain, kValues, {.top = 2});
  const phiattn::GaussianClosure<S> closure(kDimension, kValues);
  check_padding(cosformer_state<S>());
  check_padding(clusters);
  check_padding(closure);
  for (const Index window : {0, 2, 8, 70}) {
    CAPTURE(window);
    check_padding(phiattn::Windowed(window, cosformer_state<S>()));
    check_padding(phiattn::Windowed(window, clusters));
    check_padding(phiattn::Windowed(window, closure));
    check_padding(phiattn::Windowed(window, phiattn::ForgetfulMemory<S>(kValues)));
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
