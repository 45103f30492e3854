// What a token holds reaches the rows that attend to it, and no others.

#include <array>
#include <limits>
#include <string>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 20;
constexpr Index kDimension = 4;
constexpr Index kValues = 3;
constexpr std::array<Index, 6> kPositions{0, 3, 7, 8, 12, 19};  // of chunks of 8: within and at their borders
constexpr std::array<Index, 3> kChunks{1, 8, 128};

template <class S>
constexpr S kNaN = std::numeric_limits<S>::quiet_NaN();
template <class S>
constexpr S kInfinite = std::numeric_limits<S>::infinity();

template <class S>
Problem<S> causal_problem() {
  return gaussian_problem<S>({kTokens, kTokens, kDimension, kValues}, {.causality = Causality::causal});
}

/// Takes rows [begin, end) out of what is compared.
Expected without_rows(Expected expected, Index begin, Index end) {
  std::erase_if(expected.rows, [=](Index i) { return begin <= i && i < end; });
  return expected;
}

/// Polynomials of degree 0 are 1 whatever the tokens are.
template <class S>
bool looks_at_tokens(const Case<S>& similarity) {
  return similarity.name.find(" 0") == std::string::npos;
}

/// What a token that is not finite leaves as it was: rows [begin, end) attend to it.
template <class S>
Expected spared(const Case<S>& similarity, const Expected& expected, Index begin, Index end) {
  return looks_at_tokens(similarity) ? without_rows(expected, begin, end) : expected;
}

}  // namespace

TEMPLATE_TEST_CASE("a NaN in a key reaches all rows that attend to it, and no others", "[laws]", float,
                   double) {
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, causal_problem<TestType>());
    for (const Index chunk : kChunks) {
      for (const Index j : kPositions) {
        CAPTURE(similarity.name, kSeed, chunk, j);
        auto problem = causal_problem<TestType>();
        problem.options.chunk = chunk;
        problem.k(j, 1) = kNaN<TestType>;
        const Matrix<TestType> out = attend(similarity, problem);
        CHECK(error(out, spared(similarity, due, j, kTokens)) <= 1);
        CHECK(out.bottomRows(kTokens - j).array().isNaN().all() == looks_at_tokens(similarity));
      }
    }
  }
}

TEMPLATE_TEST_CASE("an infinite key reaches no row that does not attend to it", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, causal_problem<TestType>());
    for (const Index chunk : kChunks) {
      for (const Index j : kPositions) {
        for (const TestType infinity : {kInfinite<TestType>, -kInfinite<TestType>}) {
          CAPTURE(similarity.name, kSeed, chunk, j, infinity);
          auto problem = causal_problem<TestType>();
          problem.options.chunk = chunk;
          problem.k(j, 1) = infinity;
          CHECK(error(attend(similarity, problem), spared(similarity, due, j, kTokens)) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "a value that is not finite reaches its column of all rows that attend to it, and nothing else", "[laws]",
    float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, causal_problem<TestType>());
    for (const Index chunk : kChunks) {
      for (const Index j : kPositions) {
        for (const TestType value : {kNaN<TestType>, kInfinite<TestType>, -kInfinite<TestType>}) {
          CAPTURE(similarity.name, kSeed, chunk, j, value);
          auto problem = causal_problem<TestType>();
          problem.options.chunk = chunk;
          problem.v(j, 1) = value;
          Matrix<TestType> out = attend(similarity, problem);
          const auto attends = due.log_normaliser.tail(kTokens - j).array() > -oracle::kInfinity;
          CHECK(!(attends && out.col(1).tail(kTokens - j).array().isFinite()).any());
          out.col(1).tail(kTokens - j) = due.out.col(1).tail(kTokens - j).template cast<TestType>();
          CHECK(error(out, due) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("a query that is not finite reaches its own row only", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      auto problem = causal_problem<TestType>();
      problem.options = {.causality = causality, .chunk = 8};
      const Expected due = expected(similarity, problem);
      for (const Index i : kPositions) {
        for (const TestType value : {kNaN<TestType>, kInfinite<TestType>, -kInfinite<TestType>}) {
          CAPTURE(similarity.name, kSeed, causality, i, value);
          auto spoilt = problem;
          spoilt.q(i, 1) = value;
          const Matrix<TestType> out = attend(similarity, spoilt);
          CHECK(error(out, spared(similarity, due, i, i + 1)) <= 1);
          if (std::isnan(value)) CHECK(out.row(i).array().isNaN().all() == looks_at_tokens(similarity));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("a query that is not finite and attends to nothing gets 0", "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    auto problem = causal_problem<TestType>();
    problem.options.query_offset = -2;
    problem.q.topRows(2).setConstant(kNaN<TestType>);
    CAPTURE(similarity.name, kSeed);
    CHECK((attend(similarity, problem).topRows(2).array() == 0).all());
  }
}

TEMPLATE_TEST_CASE("a causal row does not depend on later tokens, however large they are", "[laws]", float,
                   double) {
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, causal_problem<TestType>());
    for (const Index chunk : kChunks) {
      for (const Index t : kPositions) {
        for (const TestType factor : {TestType(-1), TestType(100), TestType(1e9)}) {
          CAPTURE(similarity.name, kSeed, chunk, t, factor);
          auto problem = causal_problem<TestType>();
          problem.options.chunk = chunk;
          problem.q.bottomRows(kTokens - t) *= factor;
          problem.k.bottomRows(kTokens - t) *= factor;
          problem.v.bottomRows(kTokens - t) *= factor;
          CHECK(error(attend(similarity, problem), without_rows(due, t, kTokens)) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("a NaN that a memory has seen stays, and does not reach its earlier copies", "[laws]",
                   float, double) {
  const auto problem = causal_problem<TestType>();
  auto full = problem;
  full.options.causality = Causality::none;
  for (const auto& similarity : all_cases<TestType>()) {
    if (!looks_at_tokens(similarity)) continue;
    CAPTURE(similarity.name, kSeed);
    auto memory = similarity.memory(kDimension, kValues, {.chunk = 8});
    memory.append(problem.k, problem.v);
    const auto clean = memory;
    memory.append(Matrix<TestType>::Constant(1, kDimension, kNaN<TestType>), problem.v.topRows(1));
    memory.append(problem.k, problem.v);
    CHECK(memory.read(problem.q).array().isNaN().all());
    CHECK(error(clean.read(problem.q), expected(similarity, full)) <= 1);
  }
}
