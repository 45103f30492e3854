// Far memories and the windows before them are what their definitions say, however tokens come: whole, in blocks, one
// by one, merged, causal or from both sides.

#include <algorithm>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/far_cases.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 90;
constexpr Index kValues = 3;
constexpr Shape kShape{kTokens, kTokens, kFarDimension, kValues};
constexpr AttentionOptions kCausal{.causality = Causality::causal};

/// Scores of the order 1, so that neither the first nor the second order is all there is.
template <class S>
Problem<S> far_problem(const AttentionOptions& options = {}, const Shape& shape = kShape) {
  return gaussian_problem<S>(shape, options, kSeed, 1.5);
}

template <class S>
constexpr S kLogOfZero = -std::numeric_limits<S>::infinity();

template <class S>
void append(Memory<S>& memory, const Problem<S>& problem, Index first, Index n) {
  const auto k = problem.k.middleRows(first, n);
  const auto v = problem.v.middleRows(first, n);
  if (problem.log_weights.size() == 0) {
    memory.append(k, v);
  } else {
    memory.append(k, v, problem.log_weights.segment(first, n));
  }
}

/// Log-weights of either sign; every fifth key does not exist, and holds what must not matter.
template <class S>
Problem<S> weighted_problem() {
  auto problem = far_problem<S>();
  problem.log_weights = gaussian<S>(kTokens, 1, kSeed + 3, 2);
  for (Index j = 0; j < kTokens; j += 5) {
    problem.log_weights(j) = kLogOfZero<S>;
    problem.k.row(j).setConstant(std::numeric_limits<S>::quiet_NaN());
  }
  return problem;
}

/// The keys that exist, at which alone the definition is to look.
template <class S>
Problem<S> without_absent(const Problem<S>& problem) {
  if (problem.log_weights.size() == 0) return problem;
  std::vector<Index> present;
  for (Index j = 0; j < problem.log_weights.size(); ++j) {
    if (problem.log_weights(j) != kLogOfZero<S>) present.push_back(j);
  }
  return {problem.q, problem.k(present, Eigen::all), problem.v(present, Eigen::all), problem.options,
          problem.log_weights(present)};
}

template <class S>
Matrix<S> advance_in_blocks(Memory<S>& memory, const Problem<S>& problem, Index first, Index block) {
  const auto& [q, k, v, options, none] = problem;
  Matrix<S> out(q.rows() - first, v.cols());
  for (Index t = first; t < q.rows(); t += block) {
    const Index n = std::min(block, q.rows() - t);
    memory.advance(q.middleRows(t, n), k.middleRows(t, n), v.middleRows(t, n), out.middleRows(t - first, n));
  }
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("a far memory is its definition, however it is appended and merged", "[laws]", float,
                   double) {
  for (const auto& problem : {far_problem<TestType>(), weighted_problem<TestType>()}) {
    for (const auto& far : far_cases<TestType>()) {
      const Index present = without_absent(problem).k.rows();
      const Expected due = expected_far(far, without_absent(problem), all_far(present));
      for (const auto& ends :
           std::vector<std::vector<Index>>{{90}, {1, 90}, {63, 64, 64, 90}, {5, 6, 7, 8, 70, 90}}) {
        CAPTURE(far.name, kSeed, problem.log_weights.size(), ends);
        auto appended = far.memory(kValues, {.chunk = 16});
        auto merged = appended;
        auto from_behind = appended;
        Index begin = 0;
        for (const Index end : ends) {
          append(appended, problem, begin, end - begin);
          auto part = far.memory(kValues, {});
          append(part, problem, begin, end - begin);
          merged.merge(part);
          part.merge(from_behind);
          from_behind = part;
          begin = end;
        }
        for (const auto* memory : {&appended, &merged, &from_behind}) {
          CHECK(memory->size() == present);
          CHECK(error(memory->read_partial(problem.q), due) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "a far memory advances in blocks of any size, and goes on from what was appended or merged", "[laws]",
    float, double) {
  const auto problem = far_problem<TestType>(kCausal);
  for (const auto& far : far_cases<TestType>()) {
    const Expected due = expected_far<TestType>(far, problem, [](Index i) {
      return Sight{{}, {keys_in(0, i + 1, kTokens)}};
    });
    for (const Index block : {1, 2, 31, 64, 90}) {
      for (const Index chunk : {7, 128}) {
        CAPTURE(far.name, kSeed, block, chunk);
        auto memory = far.memory(kValues, {.chunk = chunk});
        CHECK(error(advance_in_blocks(memory, problem, 0, block), due) <= 1);
      }
    }
    for (const Index split : {1, 40, 64}) {
      CAPTURE(far.name, kSeed, split);
      auto past = far.memory(kValues, {});
      append(past, problem, 0, split);
      auto merged = far.memory(kValues, {});
      merged.merge(past);
      CHECK(error(advance_in_blocks(past, problem, split, 13), due, split) <= 1);
      CHECK(error(advance_in_blocks(merged, problem, split, 13), due, split) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("attention behind a window is its definition, for any window, chunk and offset", "[laws]",
                   float, double) {
  for (const auto& far : far_cases<TestType>()) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      for (const Index window : {0, 1, 2, 9, 64, 1000}) {
        for (const Index chunk : {5, 128}) {
          CAPTURE(far.name, kSeed, causality, window, chunk);
          const auto problem = far_problem<TestType>({.causality = causality, .chunk = chunk});
          CHECK(error(far.attention(window, problem),
                      expected_far(far, problem, windowed_sight(window, problem))) <= 1);
        }
      }
      for (const auto& [n_q, n_k] : {std::pair<Index, Index>{5, 40}, {40, 5}, {70, 70}}) {
        for (const Index offset : {Index{-50}, Index{-3}, Index{2}, n_k - n_q, n_k + 9}) {
          CAPTURE(far.name, kSeed, causality, n_q, n_k, offset);
          const auto problem = far_problem<TestType>({.causality = causality, .query_offset = offset},
                                                     {n_q, n_k, kFarDimension, kValues});
          CHECK(error(far.attention(8, problem), expected_far(far, problem, windowed_sight(8, problem))) <=
                1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("a window streams as it attends: token by token, after an append, after a merge", "[laws]",
                   float, double) {
  const auto problem = far_problem<TestType>(kCausal);
  for (const auto& far : far_cases<TestType>()) {
    for (const Index window : {0, 1, 16, 1000}) {
      const Expected due = expected_far(far, problem, windowed_sight(window, problem));
      for (const Index block : {1, 17, 90}) {
        CAPTURE(far.name, kSeed, window, block);
        auto memory = far.windowed(window, kValues, {});
        CHECK(error(advance_in_blocks(memory, problem, 0, block), due) <= 1);
        CHECK(memory.size() == kTokens);
      }
      for (const Index split : {1, 8, 16, 17, 60}) {
        CAPTURE(far.name, kSeed, window, split);
        auto first = far.windowed(window, kValues, {});
        append(first, problem, 0, split);
        auto second = far.windowed(window, kValues, {});
        append(second, problem, split, 70 - split);
        auto merged = first;
        merged.merge(second);
        CHECK(merged.size() == 70);
        CHECK(error(advance_in_blocks(first, problem, split, 11), due, split) <= 1);
        CHECK(error(advance_in_blocks(merged, problem, 70, 11), due, 70) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("log-weights go through a window", "[laws]", float, double) {
  const auto problem = weighted_problem<TestType>();
  for (const auto& far : far_cases<TestType>()) {
    CAPTURE(far.name, kSeed);
    auto memory = far.windowed(16, kValues, {.chunk = 7});
    append(memory, problem, 0, kTokens);
    const auto present = without_absent(problem);
    const Index n = present.k.rows();
    CHECK(error(memory.read_partial(problem.q), expected_far<TestType>(far, present, [n](Index) {
                  return Sight{keys_in(n - 16, n, n), {keys_in(0, n - 16, n)}};
                })) <= 1);
  }
}

TEMPLATE_TEST_CASE("a far memory and its window share any scale", "[laws]", float, double) {
  for (const auto& far : far_cases<TestType>()) {
    for (const double scale : {1.0, 0.1, 1e-6}) {
      CAPTURE(far.name, kSeed, scale);
      const auto problem = far_problem<TestType>({.causality = Causality::causal, .scale = scale});
      CHECK(error(far.attention(16, problem), expected_far(far, problem, windowed_sight(16, problem))) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("later tokens do not sway earlier rows, whatever they are", "[laws]", float, double) {
  for (const auto& far : far_cases<TestType>()) {
    for (const double size : {1e2, 1e15, static_cast<double>(std::numeric_limits<TestType>::quiet_NaN())}) {
      for (const Index first : {3, 41, 64}) {
        CAPTURE(far.name, kSeed, size, first);
        const auto problem = far_problem<TestType>(kCausal);
        Expected due = expected_far(far, problem, windowed_sight(8, problem));
        std::erase_if(due.rows, [=](Index i) { return i >= first; });
        auto other = problem;
        other.k.bottomRows(kTokens - first).array() *= static_cast<TestType>(size);
        other.v.bottomRows(kTokens - first).array() *= static_cast<TestType>(size);
        const Matrix<TestType> out = far.attention(8, other);
        CHECK(error(out, due) <= 1);
        if (std::isnan(size)) CHECK(out.bottomRows(kTokens - first).array().isNaN().all());
      }
    }
  }
}

TEMPLATE_TEST_CASE("a key or a value that is not finite reaches no row before it, in one block with them",
                   "[laws]", float, double) {
  const auto problem = far_problem<TestType>(kCausal);
  for (const auto& far : far_cases<TestType>()) {
    const Expected all = expected_far<TestType>(far, problem, [](Index i) {
      return Sight{{}, {keys_in(0, i + 1, kTokens)}};
    });
    for (const Index first : {3, 41, 62}) {
      Expected due = all;
      std::erase_if(due.rows, [=](Index i) { return i >= first; });
      for (const bool is_key : {true, false}) {
        CAPTURE(far.name, kSeed, first, is_key);
        auto other = problem;
        (is_key ? other.k : other.v).row(first).setConstant(std::numeric_limits<TestType>::quiet_NaN());
        const Matrix<TestType> out = far.memory(kValues, {}).advance(other.q, other.k, other.v);
        CHECK(error(out, due) <= 1);
        CHECK(out.row(first).array().isNaN().all());
      }
    }
  }
}

TEMPLATE_TEST_CASE("scores of 1e4 stay finite, and accurate where arithmetic has the digits", "[laws]", float,
                   double) {
  for (const auto& far : far_cases<TestType>()) {
    for (const double score : {1e2, 1e4}) {
      for (const Causality causality : {Causality::none, Causality::causal}) {
        CAPTURE(far.name, kSeed, score, causality);
        auto problem = far_problem<TestType>({.causality = causality, .scale = 1});
        const double largest = static_cast<double>((problem.q * problem.k.transpose()).cwiseAbs().maxCoeff());
        const auto factor = static_cast<TestType>(std::sqrt(score / largest));
        problem.q *= factor;
        problem.k *= factor;
        const Matrix<TestType> out = far.attention(8, problem);
        CHECK(out.allFinite());
        CHECK(error(out, expected_far(far, problem, windowed_sight(8, problem))) <= 1);
      }
    }
  }
}
