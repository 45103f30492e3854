// Every way to the result agrees with the definition: whole, chunked, streamed, split and merged.

#include <phiattn/attention/attention.hpp>

#include <algorithm>
#include <array>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 130;
constexpr Index kDimension = 5;
constexpr Index kValues = 3;
constexpr Shape kShape{kTokens, kTokens, kDimension, kValues};
constexpr std::array<Index, 5> kSplits{1, 63, 64, 65, 129};
constexpr AttentionOptions kCausal{.causality = Causality::causal};

template <class S>
Memory<S> empty_memory(const Case<S>& similarity) {
  return similarity.memory(kDimension, kValues, {});
}

}  // namespace

TEMPLATE_TEST_CASE("attention is the definition, in chunks of any size", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      auto problem = gaussian_problem<TestType>(kShape, {.causality = causality});
      const Expected due = expected(similarity, problem);
      for (const Index chunk : {1, 7, 64, 128}) {
        CAPTURE(similarity.name, kSeed, causality, chunk);
        problem.options.chunk = chunk;
        CHECK(error(attend(similarity, problem), due) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("an empty memory stands for its similarity", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      CAPTURE(similarity.name, kSeed, causality);
      const auto [q, k, v, options, none] = gaussian_problem<TestType>(kShape, {.causality = causality});
      CHECK(error(phiattn::attention(empty_memory(similarity), q, k, v, options),
                  expected(similarity, {q, k, v, options})) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("causal attention is a memory that advances in blocks of any size", "[laws]", float,
                   double) {
  const auto problem = gaussian_problem<TestType>(kShape, kCausal);
  const auto& [q, k, v, options, none] = problem;
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, problem);
    for (const Index block : {1, 2, 31, 64, 65, 129}) {
      CAPTURE(similarity.name, kSeed, block);
      auto memory = empty_memory(similarity);
      Matrix<TestType> out(kTokens, kValues);
      for (Index t = 0; t < kTokens; t += block) {
        const Index n = std::min(block, kTokens - t);
        memory.advance(q.middleRows(t, n), k.middleRows(t, n), v.middleRows(t, n), out.middleRows(t, n));
      }
      CHECK(memory.size() == kTokens);
      CHECK(error(out, due) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("causal attention is to append a token and to read", "[laws]", float, double) {
  const auto problem = gaussian_problem<TestType>(kShape, kCausal);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    auto memory = empty_memory(similarity);
    Matrix<TestType> out(kTokens, kValues);
    for (Index t = 0; t < kTokens; ++t) {
      memory.append(problem.k.row(t), problem.v.row(t));
      out.row(t) = memory.read(problem.q.row(t));
    }
    CHECK(error(out, expected(similarity, problem)) <= 1);
  }
}

TEMPLATE_TEST_CASE("the past may be appended, or merged from another memory, before the rest advances",
                   "[laws]", float, double) {
  const auto problem = gaussian_problem<TestType>(kShape, kCausal);
  const auto& [q, k, v, options, none] = problem;
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, problem);
    for (const Index split : kSplits) {
      CAPTURE(similarity.name, kSeed, split);
      const Index rest = kTokens - split;
      auto past = empty_memory(similarity);
      past.append(k.topRows(split), v.topRows(split));
      auto merged = empty_memory(similarity);
      merged.merge(past);
      for (auto* memory : {&past, &merged}) {
        const Matrix<TestType> out =
            memory->advance(q.bottomRows(rest), k.bottomRows(rest), v.bottomRows(rest));
        CHECK(memory->size() == kTokens);
        CHECK(error(out, due, split) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("full attention is to append, or to merge, the parts of any split and to read", "[laws]",
                   float, double) {
  const auto problem = gaussian_problem<TestType>(kShape);
  const auto& [q, k, v, options, none] = problem;
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, problem);
    for (const Index split : kSplits) {
      CAPTURE(similarity.name, kSeed, split);
      const Index rest = kTokens - split;
      auto appended = empty_memory(similarity);
      auto other = empty_memory(similarity);
      appended.append(k.topRows(split), v.topRows(split));
      other.append(k.bottomRows(rest), v.bottomRows(rest));
      auto merged = appended;
      merged.merge(other);
      appended.append(k.bottomRows(rest), v.bottomRows(rest));
      for (const auto* memory : {&appended, &merged}) {
        CHECK(memory->size() == kTokens);
        CHECK(error(memory->read(q), due) <= 1);
      }
    }
  }
}
