// How much heap a piece of code takes, by standing in for malloc and its kin, which Eigen and operator new
// both end in. Include it in one source file of a program: it defines those functions.
//
// Only with glibc, and not under a sanitizer that brings its own malloc; elsewhere kHeapIsMetered is false
// and every reading is 0. Stack memory is not counted (Eigen puts temporaries under 128 KiB there).
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

/// Bytes now allocated.
inline std::int64_t live() { return live_bytes.load(); }

/// The most bytes allocated at a time since reset_peak().
inline std::int64_t peak() { return peak_bytes.load(); }
inline void reset_peak() { peak_bytes.store(live()); }

inline void count(std::int64_t bytes) {
  const std::int64_t now = live_bytes.fetch_add(bytes) + bytes;
  std::int64_t peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

}  // namespace heap_meter

#if EXAMPLES_METER_HEAP

#include <malloc.h>

extern "C" {

void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
void* __libc_realloc(void* block, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;
void __libc_free(void* block) noexcept;

namespace heap_meter::detail {

inline std::int64_t size_of(void* block) { return static_cast<std::int64_t>(malloc_usable_size(block)); }

inline void* counted(void* block) noexcept {
  count(size_of(block));
  return block;
}

}  // namespace heap_meter::detail

void* malloc(std::size_t size) noexcept { return heap_meter::detail::counted(__libc_malloc(size)); }

void* calloc(std::size_t count, std::size_t size) noexcept {
  return heap_meter::detail::counted(__libc_calloc(count, size));
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return heap_meter::detail::counted(__libc_memalign(alignment, size));
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }

int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* const found = memalign(alignment, size);
  if (found == nullptr) return ENOMEM;
  *block = found;
  return 0;
}

void* realloc(void* block, std::size_t size) noexcept {
  const std::int64_t before = heap_meter::detail::size_of(block);
  void* const moved = __libc_realloc(block, size);
  if (moved != nullptr || size == 0) {
    heap_meter::count(heap_meter::detail::size_of(moved) - before);
  }
  return moved;
}

void free(void* block) noexcept {
  heap_meter::count(-heap_meter::detail::size_of(block));
  __libc_free(block);
}

}  // extern "C"

#endif

#undef EXAMPLES_HAS_FEATURE
#undef EXAMPLES_METER_HEAP
