// How much heap a call takes: not more for more tokens. Every allocation counts, those of Eigen (malloc) as well; where
// the heap is not metered (under sanitizers, without glibc) there is nothing to test.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <barrier>
#include <thread>

#include "../../examples/support/heap_hooks.hpp"
#include "support/catch.hpp"

using namespace phiattn;
using heap_meter::kHeapIsMetered;
using heap_meter::Usage;
using heap_meter::usage_of;

namespace {

constexpr Index kD = 16;
constexpr Index kDv = 16;

struct Sample {
  explicit Sample(Index n)
      : q(Matrix<float>::Random(n, kD)),
        k(Matrix<float>::Random(n, kD)),
        v(Matrix<float>::Random(n, kDv)),
        out(n, kDv) {}
  Matrix<float> q, k, v, out;
};

/// Of a call of attention that is the first of its thread, and of one that is not.
struct AttentionUsage {
  Usage cold, warm;
};

template <class F>
AttentionUsage usage_of_attention(const F& similarity, Index n, const AttentionOptions& options) {
  Sample t(n);
  AttentionUsage usage;
  const auto call = [&] { attention(similarity, t.q, t.k, t.v, t.out, options); };
  std::thread([&] {
    usage.cold = usage_of(call);
    usage.warm = usage_of(call);
  }).join();
  return usage;
}

template <class F>
void check_attention(const F& similarity) {
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality, .chunk = 64};
    const auto live_before = heap_meter::live();
    const AttentionUsage small = usage_of_attention(similarity, 512, options);
    const AttentionUsage large = usage_of_attention(similarity, 4096, options);
    CAPTURE(static_cast<int>(causality), small.cold.peak, large.cold.peak, large.warm.allocations);
    CHECK(large.cold.peak <= small.cold.peak + 256);  // malloc may round a block up, now and then
    CHECK(small.cold.peak > 0);                       // it does count
    // Once warm, a state and nothing else.
    CHECK(large.warm.large_allocations <= (FeatureMap<F> ? 1 : 0));
    CHECK(large.warm.live == 0);
    if (!FeatureMap<F>) CHECK(large.warm.allocations == 0);
    CHECK(heap_meter::live() <= live_before + 4096);  // the workspace goes with its thread
  }
}

/// What a warmed-up memory allocates for more tokens than it has seen.
template <Memory M>
void check_warm(M memory) {
  Sample small(512), large(4096);
  memory.advance(small.q, small.k, small.v, small.out);
  memory.read(small.q, small.out);
  const Usage heap = usage_of([&] {
    memory.read(large.q, large.out);
    if constexpr (requires { memory.map(); }) {  // a key-value cache has to grow
      memory.append(large.k, large.v);
      memory.advance(large.q, large.k, large.v, large.out);
    }
  });
  CHECK(heap.allocations == 0);
}

}  // namespace

TEST_CASE("the counter sees what Eigen allocates", "[allocation]") {
  if (!kHeapIsMetered) return;
  const Usage heap = usage_of([] { const Matrix<float> x = Matrix<float>::Zero(100, 100); });
  CHECK(heap.allocations == 1);
  CHECK(heap.peak >= 40000);
  CHECK(heap.live == 0);
}

TEST_CASE("the working memory of attention does not grow with the number of tokens", "[allocation]") {
  if (!kHeapIsMetered) return;
  SECTION("log kernel") { check_attention(ExponentialKernel<float>()); }
  SECTION("signed kernel") { check_attention(PolynomialKernel<float>::taylor(2)); }
  SECTION("log map") { check_attention(PositiveRandomFeatures<float>(sample_projection<float>(32, kD))); }
  SECTION("signed map") { check_attention(TaylorFeatures<float>(kD, 2)); }
}

TEST_CASE("a warmed-up memory allocates nothing", "[allocation]") {
  if (!kHeapIsMetered) return;
  const AttentionOptions options{.chunk = 64};
  const PositiveRandomFeatures<float> favor(sample_projection<float>(32, kD));
  SECTION("log map") { check_warm(LinearState(favor, kDv, options)); }
  SECTION("elu") { check_warm(LinearState(EluFeatures<float>(kD), kDv, options)); }
  SECTION("signed map") { check_warm(LinearState(TaylorFeatures<float>(kD, 2), kDv, options)); }
  SECTION("log kernel") { check_warm(KeyValueCache(ExponentialKernel<float>(), kDv, options)); }
  SECTION("signed kernel") { check_warm(KeyValueCache(PolynomialKernel<float>::taylor(2), kDv, options)); }
}

TEST_CASE("a warmed-up window decodes and advances without allocating", "[allocation]") {
  if (!kHeapIsMetered) return;
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  const auto check = [](auto memory) {
    Sample t(512);
    const auto decode = [&] {
      for (Index i = 0; i < 200; ++i) memory.advance(t.q.row(i), t.k.row(i), t.v.row(i), t.out.row(i));
    };
    memory.advance(t.q, t.k, t.v, t.out);
    decode();
    const Usage decoding = usage_of(decode);
    const Usage advancing = usage_of([&] { memory.advance(t.q, t.k, t.v, t.out); });
    CHECK(decoding.allocations == 0);
    CHECK(advancing.allocations == 0);
  };
  check(Windowed(32, GaussianClosure<float>(kD, kDv)));
  check(Windowed(32, ClosureMixture<float>(Matrix<double>::Random(4, kD), plain, kDv)));
  check(Windowed(32, ForgetfulMemory<float>(kDv)));
}

TEST_CASE("threads that read a memory side by side allocate nothing once warm", "[allocation]") {
  if (!kHeapIsMetered) return;
  const auto check = [](auto memory) {
    Sample t(512);
    memory.append(t.k, t.v);
    Matrix<float> outs[2] = {t.out, t.out};
    std::barrier step(3);
    const auto work = [&](int i) {
      memory.read(t.q, outs[i]);
      step.arrive_and_wait();  // warm
      step.arrive_and_wait();  // metered from here
      memory.read(t.q, outs[i]);
      step.arrive_and_wait();  // to here
    };
    std::thread first(work, 0), second(work, 1);
    step.arrive_and_wait();
    const Usage heap = usage_of([&] {
      step.arrive_and_wait();
      step.arrive_and_wait();
    });
    first.join();
    second.join();
    CHECK(heap.allocations == 0);
    CHECK(outs[0] == outs[1]);
  };
  check(LinearState(PositiveRandomFeatures<float>(sample_projection<float>(32, kD)), kDv));
  check(KeyValueCache(ExponentialKernel<float>(), kDv));
  check(Windowed(32, GaussianClosure<float>(kD, kDv)));
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  check(ClosureMixture<float>(Matrix<double>::Random(4, kD), plain, kDv));
  check(ClusterMemory<float>(Matrix<double>::Random(4, kD), plain, kDv, {.top = 2}));
}
