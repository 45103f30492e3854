// Decoding: one token after the other, with a memory that stays as small as it was, and one that grows. Then
// two memories, as two machines would fill them, merged into one.

#include <cstdint>
#include <cstdio>
#include <phiattn/phiattn.hpp>

#include "support/heap_hooks.hpp"

namespace pa = phiattn;

int main() {
  constexpr pa::Index n = 4096;
  constexpr pa::Index d = 32;
  const pa::Matrix<float> q = pa::Matrix<float>::Random(n, d);
  const pa::Matrix<float> k = pa::Matrix<float>::Random(n, d);
  const pa::Matrix<float> v = pa::Matrix<float>::Random(n, d);

  const pa::ExponentialKernel<float> softmax;
  const pa::PositiveRandomFeatures<float> favor(pa::sample_projection<float>(128, d, {.seed = 7}));
  const pa::AttentionOptions causal{.causality = pa::Causality::causal};

  // A feature map implies a LinearState, a kernel a KeyValueCache; both advance token by token.
  const std::int64_t start = heap_meter::live();
  pa::LinearState state(favor, d);
  std::int64_t state_bytes = heap_meter::live() - start;
  pa::KeyValueCache cache(softmax, d);
  std::int64_t cache_bytes = heap_meter::live() - start - state_bytes;

  pa::Matrix<float> from_state(n, d);
  pa::Matrix<float> from_cache(n, d);
  std::printf("tokens   heap of LinearState [KiB]   heap of KeyValueCache [KiB]%s\n",
              heap_meter::kHeapIsMetered ? "" : "   (not measured in this build)");
  for (pa::Index t = 0; t < n; ++t) {
    const std::int64_t before = heap_meter::live();
    state.advance(q.row(t), k.row(t), v.row(t), from_state.row(t));
    const std::int64_t between = heap_meter::live();
    cache.advance(q.row(t), k.row(t), v.row(t), from_cache.row(t));
    state_bytes += between - before;
    cache_bytes += heap_meter::live() - between;
    if (((t + 1) & t) == 0 && t >= 255) {  // 256, 512, ...
      std::printf("%6td %27.1f %29.1f\n", t + 1, static_cast<double>(state_bytes) / 1024,
                  static_cast<double>(cache_bytes) / 1024);
    }
  }

  std::printf("token by token against all at once, largest difference:\n");
  std::printf("  LinearState    %.1e\n",
              pa::maximal_error(from_state, pa::attention(favor, q, k, v, causal)));
  std::printf("  KeyValueCache  %.1e\n",
              pa::maximal_error(from_cache, pa::attention(softmax, q, k, v, causal)));

  // Two machines take half of the keys each; the merged state has seen all of them.
  pa::LinearState first(favor, d);
  pa::LinearState second(favor, d);
  first.append(k.topRows(n / 2), v.topRows(n / 2));
  second.append(k.bottomRows(n / 2), v.bottomRows(n / 2));
  first.merge(second);
  std::printf("two merged states against one, largest difference:\n  LinearState    %.1e\n",
              pa::maximal_error(first.read(q), pa::attention(favor, q, k, v)));
}
