// The definition holds for every shape, scale and offset: one factor at a time, then at random.

#include <array>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr std::array<Index, 6> kDimensions{1, 3, 7, 64, 72, 127};
constexpr std::array<Causality, 2> kBoth{Causality::none, Causality::causal};

template <class S>
void check(const Case<S>& similarity, const Problem<S>& problem, Index every = 1) {
  CAPTURE(similarity.name, problem.q.rows(), problem.k.rows(), problem.q.cols(), problem.v.cols(),
          problem.options.causality, problem.options.scale.value_or(0),
          problem.options.query_offset.has_value(), problem.options.query_offset.value_or(0),
          problem.options.chunk);
  CHECK(error(attend(similarity, problem), expected(similarity, problem, every)) <= 1);
}

}  // namespace

TEMPLATE_TEST_CASE("any number of tokens", "[laws]", float, double) {
  CAPTURE(kSeed);
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : kBoth) {
      for (const Index n : {0, 1, 2, 7, 63, 64, 65, 129, 1000}) {
        check(similarity, gaussian_problem<TestType>({n, n, 3, 2}, {.causality = causality}),
              n < 100 ? 1 : n / 10);
      }
    }
  }
}

TEMPLATE_TEST_CASE("any dimension of keys", "[laws]", float, double) {
  CAPTURE(kSeed);
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : kBoth) {
      for (const Index d : kDimensions) {
        check(similarity, gaussian_problem<TestType>({9, 9, d, 2}, {.causality = causality}));
      }
    }
  }
}

TEMPLATE_TEST_CASE("any dimension of values", "[laws]", float, double) {
  CAPTURE(kSeed);
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : kBoth) {
      for (const Index dv : kDimensions) {
        check(similarity, gaussian_problem<TestType>({17, 17, 3, dv}, {.causality = causality}));
      }
    }
  }
}

TEMPLATE_TEST_CASE("any scale", "[laws]", float, double) {
  CAPTURE(kSeed);
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : kBoth) {
      for (const std::optional<double> scale :
           {std::optional<double>{}, std::optional{1.0}, std::optional{0.5}, std::optional{3.0},
            std::optional{1e-6}}) {
        check(similarity,
              gaussian_problem<TestType>({33, 33, 4, 2}, {.causality = causality, .scale = scale}));
      }
    }
  }
}

TEMPLATE_TEST_CASE("more queries than keys, fewer, and any offset between them", "[laws]", float, double) {
  CAPTURE(kSeed);
  constexpr Index kFar = std::numeric_limits<Index>::max();
  constexpr Index kFarBack = std::numeric_limits<Index>::min();
  for (const auto& similarity : all_cases<TestType>()) {
    for (const auto& [n_q, n_k] : {std::pair<Index, Index>{5, 20}, {20, 5}, {1, 70}, {70, 1}, {9, 9}}) {
      auto problem =
          gaussian_problem<TestType>({n_q, n_k, 3, 2}, {.causality = Causality::causal, .chunk = 4});
      check(similarity, problem);
      for (const Index offset : {Index{-1}, Index{-7}, Index{0}, Index{1}, Index{7}, n_k - 1, n_k, n_k + 3,
                                 1 - n_q, -n_q, -n_q - 3, kFar, kFar - n_q, kFarBack, kFarBack + n_q}) {
        problem.options.query_offset = offset;
        for (const Causality causality : kBoth) {
          problem.options.causality = causality;
          check(similarity, problem);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("no queries, no keys, no values", "[laws]", float, double) {
  CAPTURE(kSeed);
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : kBoth) {
      CAPTURE(similarity.name, causality);
      for (const Shape& shape :
           {Shape{0, 7, 3, 2}, Shape{7, 0, 3, 2}, Shape{7, 7, 3, 0}, Shape{0, 0, 3, 0}}) {
        const auto problem = gaussian_problem<TestType>(shape, {.causality = causality});
        check(similarity, problem);
        auto memory = similarity.memory(shape.d, shape.dv, {});
        memory.append(problem.k, problem.v);
        CHECK(memory.size() == shape.n_k);
        const auto partial = memory.read_partial(problem.q);
        CHECK(partial.out.rows() == shape.n_q);
        CHECK(partial.out.cols() == shape.dv);
        if (shape.n_k == 0) {
          CHECK(attend(similarity, problem) == Matrix<TestType>::Zero(shape.n_q, shape.dv));
          CHECK((partial.log_normaliser.array() == -std::numeric_limits<TestType>::infinity()).all());
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("without dimensions kernels attend uniformly, and what needs them refuses", "[laws]",
                   float, double) {
  CAPTURE(kSeed);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name);
    if (similarity.needs_dimension) {
      CHECK_THROWS_AS(similarity.memory(0, 2, {}), std::invalid_argument);
      continue;
    }
    for (const Causality causality : kBoth) {
      const auto problem = gaussian_problem<TestType>({7, 7, 0, 2}, {.causality = causality, .chunk = 3});
      check(similarity, problem);
      const Matrix<TestType> weights = similarity.weights(problem.q, problem.k, problem.options);
      CHECK(weights(6, 0) == Approx(1.0 / 7));
      CHECK(weights(0, 0) == Approx(causality == Causality::none ? 1.0 / 7 : 1.0));
    }
  }
}

TEMPLATE_TEST_CASE("everything at once, at random", "[laws]", float, double) {
  std::uint64_t seed = kSeed;
  for (const auto& similarity : all_cases<TestType>()) {
    for (int round = 0; round < 7; ++round) {
      std::mt19937_64 random(++seed);
      CAPTURE(seed);
      const auto draw = [&](Index least, Index most) {
        return least + static_cast<Index>(random() % static_cast<std::uint64_t>(most - least + 1));
      };
      const Shape shape{draw(0, 90), draw(0, 90), draw(1, 20), draw(1, 20)};
      AttentionOptions options;
      options.causality = kBoth[static_cast<std::size_t>(draw(0, 1))];
      options.chunk = draw(1, 100);
      if (draw(0, 1) == 1) options.scale = std::exp(static_cast<double>(draw(-300, 100)) / 100);
      if (draw(0, 1) == 1) options.query_offset = draw(-shape.n_q - 2, shape.n_k + 2);
      check(similarity, gaussian_problem<TestType>(shape, options, seed));
    }
  }
}
