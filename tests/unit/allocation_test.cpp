// How much heap a call takes: not more for more tokens. Every allocation counts, those of Eigen (malloc) as well, so
// this file puts itself in front of glibc's allocator; elsewhere, and under sanitizers, there is nothing to test.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <cstddef>

#include "support/catch.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define PHIATTN_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PHIATTN_TEST_SANITIZED
#endif

#if defined(__GLIBC__) && !defined(PHIATTN_TEST_SANITIZED)

#include <malloc.h>

#include <algorithm>
#include <cerrno>

namespace {

/// What the heap of this thread has been asked for since the last reset.
struct Heap {
  std::ptrdiff_t live = 0;
  std::ptrdiff_t peak = 0;
  std::ptrdiff_t allocations = 0;
  std::ptrdiff_t large = 0;  // of them, those of 8 KiB or more
};
thread_local constinit Heap t_heap;

void* taken(void* block) {
  if (block != nullptr) {
    ++t_heap.allocations;
    if (malloc_usable_size(block) >= 8192) ++t_heap.large;
    t_heap.live += static_cast<std::ptrdiff_t>(malloc_usable_size(block));
    t_heap.peak = std::max(t_heap.peak, t_heap.live);
  }
  return block;
}

void given_back(void* block) {
  if (block != nullptr) t_heap.live -= static_cast<std::ptrdiff_t>(malloc_usable_size(block));
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) noexcept { return taken(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) noexcept { return taken(__libc_calloc(count, size)); }
void* realloc(void* block, std::size_t size) noexcept {
  given_back(block);
  return taken(__libc_realloc(block, size));
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return taken(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return taken(__libc_memalign(alignment, size));
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  *block = taken(__libc_memalign(alignment, size));
  return *block == nullptr ? ENOMEM : 0;
}
void free(void* block) noexcept {
  given_back(block);
  __libc_free(block);
}

}  // extern "C"

using namespace phiattn;

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

template <class Call>
Heap heap_of(const Call& call) {
  t_heap = {};
  call();
  return t_heap;
}

template <class F>
Heap heap_of_attention(const F& similarity, Index n, const AttentionOptions& options) {
  Sample t(n);
  return heap_of([&] { attention(similarity, t.q, t.k, t.v, t.out, options); });
}

template <class F>
void check_attention(const F& similarity) {
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality, .chunk = 64};
    const Heap small = heap_of_attention(similarity, 512, options);
    const Heap large = heap_of_attention(similarity, 4096, options);
    CAPTURE(static_cast<int>(causality), small.peak, large.peak, small.allocations, large.allocations);
    CHECK(large.peak <= small.peak + 256);  // malloc may round a block up, now and then
    CHECK(small.peak > 0);                  // it does count
    // The scratch and the sums: more blocks would go back to the system after each call.
    CHECK(large.large <= (FeatureMap<F> ? 2 : 1));
    CHECK(large.live == 0);
  }
}

/// What a warmed-up memory allocates for more tokens than it has seen.
template <Memory M>
void check_warm(M memory) {
  Sample small(512), large(4096);
  memory.advance(small.q, small.k, small.v, small.out);
  memory.read(small.q, small.out);
  const Heap heap = heap_of([&] {
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
  const Heap heap = heap_of([] { const Matrix<float> x = Matrix<float>::Zero(100, 100); });
  CHECK(heap.allocations == 1);
  CHECK(heap.peak >= 40000);
  CHECK(heap.live == 0);
}

TEST_CASE("the working memory of attention does not grow with the number of tokens", "[allocation]") {
  SECTION("log kernel") { check_attention(ExponentialKernel<float>()); }
  SECTION("signed kernel") { check_attention(PolynomialKernel<float>::taylor(2)); }
  SECTION("log map") { check_attention(PositiveRandomFeatures<float>(sample_projection<float>(32, kD))); }
  SECTION("signed map") { check_attention(TaylorFeatures<float>(kD, 2)); }
}

TEST_CASE("a warmed-up memory allocates nothing", "[allocation]") {
  const AttentionOptions options{.chunk = 64};
  const PositiveRandomFeatures<float> favor(sample_projection<float>(32, kD));
  SECTION("log map") { check_warm(LinearState(favor, kDv, options)); }
  SECTION("elu") { check_warm(LinearState(EluFeatures<float>(kD), kDv, options)); }
  SECTION("signed map") { check_warm(LinearState(TaylorFeatures<float>(kD, 2), kDv, options)); }
  SECTION("log kernel") { check_warm(KeyValueCache(ExponentialKernel<float>(), kDv, options)); }
  SECTION("signed kernel") { check_warm(KeyValueCache(PolynomialKernel<float>::taylor(2), kDv, options)); }
}

TEST_CASE("a warmed-up window decodes and advances without allocating", "[allocation]") {
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  const auto check = [](auto memory) {
    Sample t(512);
    const auto decode = [&] {
      for (Index i = 0; i < 200; ++i) memory.advance(t.q.row(i), t.k.row(i), t.v.row(i), t.out.row(i));
    };
    memory.advance(t.q, t.k, t.v, t.out);
    decode();
    const Heap decoding = heap_of(decode);
    const Heap advancing = heap_of([&] { memory.advance(t.q, t.k, t.v, t.out); });
    CHECK(decoding.allocations == 0);
    CHECK(advancing.allocations == 0);
  };
  check(Windowed(32, GaussianClosure<float>(kD, kDv)));
  check(Windowed(32, ClosureMixture<float>(Matrix<double>::Random(4, kD), plain, kDv)));
  check(Windowed(32, ForgetfulMemory<float>(kDv)));
}

#endif
