// Memories that start anew, roll back and make room ahead.

#include <phiattn/attention/head_memories.hpp>
#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/window.hpp>

#include "support/catch.hpp"
#include "support/far_cases.hpp"
#include "support/thrown.hpp"

using namespace laws;

namespace {

constexpr Shape kShape{40, 40, kFarDimension, 3};

/// Every memory, alone and behind windows.
template <class S>
std::vector<std::pair<std::string, Memory<S>>> all_memories() {
  std::vector<std::pair<std::string, Memory<S>>> all;
  for (const auto& one : all_cases<S>()) all.emplace_back(one.name, one.memory(kShape.d, kShape.dv, {}));
  for (const auto& far : far_cases<S>()) {
    all.emplace_back(far.name, far.memory(kShape.dv, {}));
    all.emplace_back(far.name + " behind 16", far.windowed(16, kShape.dv, {}));
  }
  return all;
}

template <class S>
Matrix<S> advance(Memory<S>& memory, const Problem<S>& problem, Index first, Index n) {
  return memory.advance(problem.q.middleRows(first, n), problem.k.middleRows(first, n),
                        problem.v.middleRows(first, n));
}

}  // namespace

TEMPLATE_TEST_CASE("what was cleared is as new", "[forgetting]", float, double) {
  using S = TestType;
  const auto problem = gaussian_problem<S>(kShape);
  for (auto& [name, memory] : all_memories<S>()) {
    CAPTURE(name);
    Memory<S> fresh = memory;
    advance(memory, problem, 0, 29);
    memory.clear();
    CHECK(memory.size() == 0);
    CHECK(memory.read(problem.q).isZero(0));
    for (const auto& [first, n] : {std::pair<Index, Index>{0, 20}, {20, 1}, {21, 19}}) {
      CHECK(same_bits(advance(memory, problem, first, n), advance(fresh, problem, first, n)));
    }
    CHECK(same_bits(memory.read(problem.q), fresh.read(problem.q)));
  }
}

TEMPLATE_TEST_CASE("what was truncated goes on as if the rest had never come, or says that it cannot",
                   "[forgetting]", float, double) {
  using S = TestType;
  const auto problem = gaussian_problem<S>(kShape);
  for (auto& [name, memory] : all_memories<S>()) {
    CAPTURE(name);
    Memory<S> fresh = memory;
    advance(memory, problem, 0, 30);
    const Matrix<S> before = memory.read(problem.q, 30);
    memory.truncate(30);
    CHECK_THROWS_WITH(memory.truncate(31), ContainsSubstring("n of truncate: got 31"));
    CHECK_THROWS_WITH(memory.truncate(-1), ContainsSubstring("n of truncate: got -1"));
    bool can = true;
    try {
      memory.truncate(17);
    } catch (const std::invalid_argument& e) {
      CHECK_THAT(e.what(), ContainsSubstring("got 17, expected 0 or 30"));
      can = false;
    }
    if (!can) {
      CHECK(memory.size() == 30);
      CHECK(same_bits(memory.read(problem.q, 30), before));
      memory.truncate(0);
      CHECK(memory.size() == 0);
      continue;
    }
    CHECK(memory.size() == 17);
    advance(fresh, problem, 0, 17);
    CHECK(same_bits(advance(memory, problem, 17, 9), advance(fresh, problem, 17, 9)));
    CHECK(same_bits(memory.read(problem.q, 26), fresh.read(problem.q, 26)));
  }
}

TEST_CASE("caches and windows that nothing has left roll back", "[forgetting]") {
  const phiattn::ExponentialKernel<float> softmax;
  const auto problem = gaussian_problem<float>(kShape);
  phiattn::KeyValueCache cache(softmax, 3);
  cache.append(problem.k, problem.v, {.first = 100});
  cache.truncate(10);
  CHECK(cache.keys().rows() == 10);
  CHECK(cache.values() == problem.v.topRows(10));
  CHECK((cache.keys() - problem.k.topRows(10) / std::pow(5.0F, 0.25F)).cwiseAbs().maxCoeff() <= 1e-6F);

  phiattn::Windowed window(16, phiattn::ForgetfulMemory<float>(3));
  window.append(problem.k.topRows(16), problem.v.topRows(16));
  window.truncate(5);
  CHECK(window.size() == 5);
  window.append(problem.k.topRows(16), problem.v.topRows(16));
  CHECK_THROWS(window.truncate(20));
  CHECK(window.size() == 21);

  phiattn::HeadMemories heads(2, 1, phiattn::KeyValueCache(softmax, 3));
  const auto k = phiattn::packed_heads(problem.k, 1, 2), v = phiattn::packed_heads(problem.v, 1, 2);
  heads.append(k, v);
  heads.truncate(1, 3);
  CHECK(heads.size(0) == 20);
  CHECK(heads.size(1) == 3);
}

TEST_CASE("room that was made ahead is enough, and a workspace can be given back", "[forgetting]") {
  const auto problem = gaussian_problem<float>({1, 1000, 5, 3});
  phiattn::KeyValueCache cache(phiattn::ExponentialKernel<float>(), 3);
  cache.reserve(1000);
  cache.append(problem.k.topRows(1), problem.v.topRows(1));
  const float* const keys = cache.keys().data();
  for (Index t = 1; t < 1000; ++t) cache.append(problem.k.row(t), problem.v.row(t));
  CHECK(cache.keys().data() == keys);
  CHECK_THROWS(cache.reserve(-1));
  const Matrix<float> before = cache.read(problem.q);
  phiattn::release_workspace();
  CHECK(cache.read(problem.q) == before);
}
