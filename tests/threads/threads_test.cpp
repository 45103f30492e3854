// What threads share: memories and similarities that several read, tables made once, and nothing else. Under a sanitizer
// (sh cmake/run.sh tsan, valgrind): alone these tests only say that the bits are the same.

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <cfenv>
#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr int kThreads = 4;
constexpr Index kN = 100;
constexpr Index kD = 8;
constexpr Index kDv = 4;
constexpr AttentionOptions kCausal{.causality = Causality::causal, .chunk = 16};

struct Sample {
  Matrix<float> q = Matrix<float>::Random(kN, kD), k = Matrix<float>::Random(kN, kD),
                v = Matrix<float>::Random(kN, kDv);
};

/// What each of several threads makes of work(i), all at once.
std::vector<Matrix<float>> in_threads(const std::function<Matrix<float>(int i)>& work) {
  std::vector<Matrix<float>> results(kThreads);
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      results[static_cast<std::size_t>(i)] = work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

void check_all_equal(const std::vector<Matrix<float>>& results, const Matrix<float>& due) {
  for (const auto& result : results) CHECK(result == due);
}

Reparametrisation plain() {
  return Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
}

std::vector<AnyMemory<float>> memories() {
  const Matrix<double> centres = Matrix<double>::Random(4, kD);
  const GaussianClosure<float> closure(kD, kDv);
  const ClusterMemory<float> clusters(centres, plain(), kDv, {.top = 2});
  return {LinearState(EluFeatures<float>(kD), kDv, kCausal),
          LinearState(TaylorFeatures<float>(kD, 2), kDv, kCausal),
          KeyValueCache(ExponentialKernel<float>(), kDv, kCausal),
          closure,
          ClosureMixture<float>(centres, plain(), kDv),
          clusters,
          Windowed(8, closure),
          Windowed(8, clusters)};
}

}  // namespace

TEST_CASE("threads read one memory side by side") {
  const Sample t;
  for (AnyMemory<float> memory : memories()) {
    memory.append(t.k, t.v);
    const AnyMemory<float>& shared = memory;
    const Matrix<float> due = shared.read(t.q);
    check_all_equal(in_threads([&](int) { return shared.read(t.q); }), due);
    check_all_equal(in_threads([&](int) { return AnyMemory<float>(shared).read(t.q); }), due);
    check_all_equal(in_threads([&](int) { return shared.read_partial(t.q).out; }), due);
  }
}

TEST_CASE("threads share a similarity and an empty memory, each with a state of its own") {
  const Sample t;
  const auto attend = [&](const auto& similarity) {
    const auto call = [&] { return attention(similarity, t.q, t.k, t.v, kCausal); };
    const Matrix<float> due = call();
    check_all_equal(in_threads([&](int) { return call(); }), due);
  };
  attend(ExponentialKernel<float>());
  attend(any_feature_map(EluFeatures<float>(kD)));
  attend(TaylorFeatures<float>(kD, 2));
  attend(PositiveRandomFeatures<float>(
      sample_projection<float>(16, kD, {.directions = Directions::hadamard, .antithetic = true})));
  for (const AnyMemory<float>& empty : memories()) {
    const auto call = [&] {
      return attention(empty, t.q, t.k, t.v, AttentionOptions{.causality = Causality::causal});
    };
    const Matrix<float> due = call();
    check_all_equal(in_threads([&](int) { return call(); }), due);
  }
}

TEST_CASE("threads fill a memory each, and their shares merge") {
  const Sample t;
  constexpr Index kShare = kN / kThreads;
  for (const AnyMemory<float>& empty : memories()) {
    std::vector<AnyMemory<float>> shares(kThreads, empty);
    in_threads([&](int i) {
      shares[static_cast<std::size_t>(i)].append(t.k.middleRows(i * kShare, kShare),
                                                 t.v.middleRows(i * kShare, kShare));
      return Matrix<float>();
    });
    auto alone = empty;
    for (int i = 0; i < kThreads; ++i) {
      auto share = empty;
      share.append(t.k.middleRows(i * kShare, kShare), t.v.middleRows(i * kShare, kShare));
      alone.merge(share);
    }
    auto merged = empty;
    for (const auto& share : shares) merged.merge(share);
    CHECK(merged.size() == kN);
    CHECK(merged.read(t.q) == alone.read(t.q));
  }
}

TEST_CASE("what is set up on first use is set up once, by whichever thread comes first") {
  const Sample t;
  const auto results = in_threads([&](int) {
    const PositiveRandomFeatures<float> map(sample_projection<float>(16, kD, {.radii = Radii::quantile}));
    return attention(map, t.q, t.k, t.v);
  });
  check_all_equal(results, results.front());
}

TEST_CASE("each thread keeps its own rounding mode") {
  const Sample t;
  const EluFeatures<float> elu(kD);
  const auto results = in_threads([&](int i) {
    const int mode = i % 2 == 0 ? FE_TONEAREST : FE_UPWARD;
    std::fesetround(mode);
    const Matrix<float> out = attention(elu, t.q, t.k, t.v, kCausal);
    return std::fegetround() == mode ? out : Matrix<float>();
  });
  check_all_equal(results, results.front());
}
