// Stands in for malloc and its kin, which Eigen and operator new both end in, so that they are counted and can fail: see
// heap_meter.hpp. Include it in one source file of a program.
#pragma once

#include "heap_meter.hpp"

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

/// Whether this is the allocation that fails.
inline bool fails() { return blocks_until_failure.load() > 0 && --blocks_until_failure == 0; }

inline void* counted(void* block) noexcept {
  if (block == nullptr) return block;
  const std::int64_t bytes = size_of(block);
  count(bytes);
  count_block(bytes);
  return block;
}

}  // namespace heap_meter::detail

void* malloc(std::size_t size) noexcept {
  if (heap_meter::detail::fails()) return nullptr;
  return heap_meter::detail::counted(__libc_malloc(size));
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  if (heap_meter::detail::fails()) return nullptr;
  return heap_meter::detail::counted(__libc_calloc(count, size));
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  if (heap_meter::detail::fails()) return nullptr;
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
  if (heap_meter::detail::fails()) return nullptr;
  void* const moved = __libc_realloc(block, size);
  if (moved == nullptr && size != 0) return moved;  // the block is as it was
  const std::int64_t after = heap_meter::detail::size_of(moved);
  heap_meter::count(after - before);
  if (moved != nullptr) heap_meter::count_block(after);
  return moved;
}

void free(void* block) noexcept {
  heap_meter::count(-heap_meter::detail::size_of(block));
  __libc_free(block);
}

}  // extern "C"

#endif
