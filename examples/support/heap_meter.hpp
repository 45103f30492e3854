// How much heap a piece of code takes, and what it does when there is none, in a program one of whose source files includes
// heap_hooks.hpp.
//
// Only with glibc, and not under a sanitizer that brings its own malloc; elsewhere kHeapIsMetered is false
// and every reading is 0. Stack memory is not counted (Eigen puts temporaries under 128 KiB there). All threads count.
//
// The one meter of this project. It lies here because an example is to be read without the tests and benchmarks, which
// include it too.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__has_feature)
#define EXAMPLES_HAS_FEATURE(x) __has_feature(x)
#else
#define EXAMPLES_HAS_FEATURE(x) 0
#endif

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !EXAMPLES_HAS_FEATURE(address_sanitizer) && !EXAMPLES_HAS_FEATURE(thread_sanitizer) &&   \
    !EXAMPLES_HAS_FEATURE(memory_sanitizer) && !EXAMPLES_HAS_FEATURE(leak_sanitizer)
#define EXAMPLES_METER_HEAP 1
#else
#define EXAMPLES_METER_HEAP 0
#endif

namespace heap_meter {

inline constexpr bool kHeapIsMetered = EXAMPLES_METER_HEAP == 1;

inline constinit std::atomic<std::int64_t> live_bytes = 0;
inline constinit std::atomic<std::int64_t> peak_bytes = 0;
inline constinit std::atomic<std::int64_t> allocated_blocks = 0;
inline constinit std::atomic<std::int64_t> allocated_large_blocks = 0;

/// Bytes from which on a block is large: more than bookkeeping.
inline constexpr std::int64_t kLarge = 8192;

/// Counts down to the allocation that fails; 0: none does.
inline constinit std::atomic<std::int64_t> blocks_until_failure = 0;

/// Bytes now allocated.
inline std::int64_t live() { return live_bytes.load(); }

/// The most bytes allocated at a time since reset_peak().
inline std::int64_t peak() { return peak_bytes.load(); }
inline void reset_peak() { peak_bytes.store(live()); }

/// What a call takes.
struct Usage {
  std::int64_t live = 0;  // bytes that it does not give back
  std::int64_t peak = 0;  // the most bytes at a time
  std::int64_t allocations = 0;
  std::int64_t large_allocations = 0;  // of them
};

template <class Call>
Usage usage_of(const Call& call) {
  const std::int64_t live_before = live();
  const std::int64_t blocks_before = allocated_blocks.load();
  const std::int64_t large_before = allocated_large_blocks.load();
  reset_peak();
  call();
  return {live() - live_before, peak() - live_before, allocated_blocks.load() - blocks_before,
          allocated_large_blocks.load() - large_before};
}

inline void count(std::int64_t bytes) {
  const std::int64_t now = live_bytes.fetch_add(bytes) + bytes;
  std::int64_t peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

inline void count_block(std::int64_t bytes) {
  ++allocated_blocks;
  if (bytes >= kLarge) ++allocated_large_blocks;
}

}  // namespace heap_meter
