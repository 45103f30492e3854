// Heads and batches are what each head is by itself.

#include <phiattn/attention/head_memories.hpp>
#include <phiattn/attention/heads.hpp>

#include "support/catch.hpp"
#include "support/far_cases.hpp"
#include "support/head_tensors.hpp"

using namespace laws;

namespace {

constexpr Shape kSmall{7, 7, kFarDimension, 3};
constexpr Shape kLong{70, 70, kFarDimension, 3};

template <class S>
using Memories = phiattn::HeadMemories<Memory<S>>;

/// The worst error over all heads.
template <class S>
double worst_error(const Case<S>& similarity, const HeadsProblem<S>& problem) {
  double worst = 0;
  for (Index b = 0; b < problem.batch(); ++b) {
    for (Index h = 0; h < problem.heads; ++h) {
      worst = worse(error(problem.out.head(b, h), expected(similarity, problem.head(b, h), 5)), worst);
    }
  }
  return worst;
}

template <class S>
void advance(Memories<S>& memories, HeadsProblem<S>& problem, Index first, Index n) {
  memories.advance(problem.q.view().tokens(first, n), problem.k.view().tokens(first, n),
                   problem.v.view().tokens(first, n), problem.out.view().tokens(first, n));
}

}  // namespace

TEMPLATE_TEST_CASE("one call over heads is a call for each of them, grouped or not, in any layout", "[laws]",
                   float, double) {
  using S = TestType;
  for (const auto& similarity : all_cases<S>()) {
    CAPTURE(similarity.name);
    for (const auto causality : {Causality::none, Causality::causal}) {
      const AttentionOptions options{.causality = causality, .chunk = 16};
      for (const Index kv_heads : {3, 1}) {
        HeadsProblem<S> problem(2, 3, kv_heads, kSmall, kv_heads == 1 ? Layout::bthd : Layout::bhtd, options);
        phiattn::attention(similarity.memory(kSmall.d, kSmall.dv, options), problem.q.view(),
                           problem.k.view(), problem.v.view(), problem.out.view(), options);
        CHECK(worst_error(similarity, problem) <= 1);
      }
      HeadsProblem<S> longer(1, 3, 1, {30, 70, kFarDimension, 3}, Layout::bthd, options);
      phiattn::attention(similarity.memory(kLong.d, kLong.dv, options), longer.q.view(), longer.k.view(),
                         longer.v.view(), longer.out.view(), options);
      CHECK(worst_error(similarity, longer) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("memories of all heads advance a prompt and single tokens, several queries a key",
                   "[laws]", float, double) {
  using S = TestType;
  for (const auto& similarity : all_cases<S>()) {
    CAPTURE(similarity.name);
    HeadsProblem<S> problem(2, 6, 2, kLong, Layout::bthd, {.causality = Causality::causal, .chunk = 16});
    Memories<S> memories(2, 2, similarity.memory(kLong.d, kLong.dv, {.chunk = 16}));
    for (const auto& [first, n] :
         {std::pair<Index, Index>{0, 0}, {0, 1}, {1, 49}, {50, 1}, {51, 2}, {53, 17}}) {
      advance(memories, problem, first, n);
    }
    CHECK(memories.size(1) == kLong.n_k);
    CHECK(worst_error(similarity, problem) <= 1);
  }
}

TEMPLATE_TEST_CASE("far memories take several queries a key as one, alone and behind a window", "[laws]",
                   float, double) {
  using S = TestType;
  for (const auto& far : far_cases<S>()) {
    CAPTURE(far.name);
    for (const Index window : {0, 16}) {
      CAPTURE(window);
      HeadsProblem<S> problem(1, 3, 1, kLong, Layout::bthd, {.causality = Causality::causal});
      Memories<S> memories(1, 1, window == 0 ? far.memory(kLong.dv, {}) : far.windowed(window, kLong.dv, {}));
      for (const auto& [first, n] : {std::pair<Index, Index>{0, 3}, {3, 1}, {4, 60}, {64, 6}}) {
        advance(memories, problem, first, n);
      }
      for (Index h = 0; h < 3; ++h) {
        const auto head = problem.head(0, h);
        CHECK(error(problem.out.head(0, h), expected_far(far, head, windowed_sight(window, head))) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("streams start, end, merge and are padded one by one", "[laws]", float, double) {
  using S = TestType;
  for (const auto& similarity : all_cases<S>()) {
    CAPTURE(similarity.name);
    HeadsProblem<S> problem(1, 3, 1, kSmall, Layout::bthd);
    const auto q = problem.q.view(), k = problem.k.view(), v = problem.v.view();
    const Memories<S> empty(3, 1, similarity.memory(kSmall.d, kSmall.dv, {}));
    Memories<S> memories = empty, later = empty;
    const Index last[] = {2}, first[] = {0};
    const auto due = [&](Index n) {
      Problem<S> head = problem.head(0, 1);
      head.k = head.k.topRows(n).eval();
      head.v = head.v.topRows(n).eval();
      return expected(similarity, head);
    };
    const auto read = [&](const Memories<S>& from, const Index(&stream)[1]) {
      from.read(q, problem.out.view(), {.streams = stream});
      return problem.out.head(0, 1);
    };
    memories.append(k.tokens(0, 4), v.tokens(0, 4), {.streams = last});
    CHECK(memories.size(0) == 0);
    CHECK(memories.size(2) == 4);
    CHECK(error(read(memories, last), due(4)) <= 1);
    CHECK(read(memories, first).isZero(0));

    later.append(k.tokens(4, 3), v.tokens(4, 3), {.streams = last});
    memories.merge(later);
    CHECK(error(read(memories, last), due(7)) <= 1);

    Matrix<S> log_weights = Matrix<S>::Zero(1, 7);
    log_weights.rightCols(2).setConstant(-std::numeric_limits<S>::infinity());
    memories.append(k, v, {.log_weights = log_weights, .streams = first});
    CHECK(memories.size(0) == 5);
    CHECK(error(read(memories, first), due(5)) <= 1);

    memories.clear(2);
    CHECK(memories.size(0) == 5);
    CHECK(read(memories, last).isZero(0));
    memories.resize(1);
    memories.resize(2);
    CHECK(memories.size(0) == 5);
    CHECK(memories.size(1) == 0);
  }
}
