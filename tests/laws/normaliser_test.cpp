// The normaliser, in full, and what is said of it when it is not positive.

#include <limits>
#include <optional>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 40;
constexpr Index kDimension = 3;

/// Scores from -9 to -4 or from 4 to 9, by the sign of the query: odd Taylor polynomials take that sign.
template <class S>
Problem<S> signed_problem(const AttentionOptions& options) {
  auto problem = gaussian_problem<S>({kTokens, kTokens, kDimension, 2}, options);
  problem.k = problem.k.unaryExpr([](S x) { return S(1) + std::abs(std::fmod(x, S(0.5))); });
  problem.q = (problem.q.col(0).cwiseSign() * RowVector<S>::Constant(kDimension, S(2.5))).eval();
  problem.options.scale = 0.6;
  return problem;
}

AttentionStatus status_of(const Expected& expected) {
  AttentionStatus status;
  for (const Index i : expected.rows) {
    if (expected.sign(i) < 0) status.add(i);
  }
  return status;
}

void check_same(const AttentionStatus& came, const AttentionStatus& due) {
  CHECK(came.nonpositive_rows == due.nonpositive_rows);
  CHECK(came.first_nonpositive_row == due.first_nonpositive_row);
}

}  // namespace

TEMPLATE_TEST_CASE("log_normaliser and sign are those of sum_j sim(q, k_j), in the caller's own scores",
                   "[laws]", float, double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const std::optional<double> scale :
         {std::optional<double>{}, std::optional{1.0}, std::optional{3.0}}) {
      for (const double size : {0.1, 1.0, 4.0}) {
        CAPTURE(similarity.name, kSeed, scale.value_or(0), size);
        const auto problem =
            gaussian_problem<TestType>({kTokens, kTokens, kDimension, 2}, {.scale = scale}, kSeed, size);
        auto memory = similarity.memory(kDimension, 2, problem.options);
        memory.append(problem.k, problem.v);
        CHECK(error(memory.read_partial(problem.q), expected(similarity, problem)) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("the status counts the rows of negative normaliser and names the first", "[laws]", float,
                   double) {
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      for (const Index chunk : {1, 7, 128}) {
        for (const Index offset : {0, -3, 3}) {
          CAPTURE(similarity.name, kSeed, causality, chunk, offset);
          const AttentionOptions options{.causality = causality, .query_offset = offset, .chunk = chunk};
          const auto problem = signed_problem<TestType>(options);
          const Expected due = expected(similarity, problem);
          const AttentionStatus status = status_of(due);
          CHECK((status.nonpositive_rows > 5) == !similarity.positive);

          Matrix<TestType> out(kTokens, 2);
          check_same(similarity.attention(problem.q, problem.k, problem.v, out, problem.options), status);
          CHECK(error(out, due) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("the status of a memory is that of the rows it read or advanced", "[laws]", float,
                   double) {
  const auto problem = signed_problem<TestType>({.causality = Causality::causal, .chunk = 7});
  const auto& [q, k, v, options, none] = problem;
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    auto memory = similarity.memory(kDimension, 2, options);
    Matrix<TestType> out(kTokens, 2);
    AttentionStatus status;
    for (const Index first : {0, 20}) {
      status.add(memory.advance(q.middleRows(first, 20), k.middleRows(first, 20), v.middleRows(first, 20),
                                out.middleRows(first, 20)),
                 first);
    }
    const AttentionStatus due = status_of(expected(similarity, problem));
    check_same(status, due);
    check_same(memory.read(q, out), due);  // signs do not depend on the keys here
  }
}

TEMPLATE_TEST_CASE("a normaliser of exactly 0 counts as not positive", "[laws]", float, double) {
  const Matrix<TestType> one = Matrix<TestType>::Ones(1, 1);
  Matrix<TestType> out(1, 1);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name);
    if (similarity.name.find("Taylor") == std::string::npos || similarity.name.find('1') == std::string::npos)
      continue;
    check_same(similarity.attention(-one, one, one, out, {.scale = 1}), {1, 0});  // 1 + q . k
  }
}

TEMPLATE_TEST_CASE("a row that attends to nothing is not counted", "[laws]", float, double) {
  const auto problem = signed_problem<TestType>({});
  Matrix<TestType> out(kTokens, 2);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name);
    CHECK(similarity.memory(kDimension, 2, {}).read(problem.q, out).ok());
    CHECK((out.array() == 0).all());
    const AttentionOptions all_before{.causality = Causality::causal, .query_offset = -kTokens};
    CHECK(similarity.attention(problem.q, problem.k, problem.v, out, all_before).ok());
    CHECK((out.array() == 0).all());
  }
}
