// What time and memory a model takes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "../support/heap_meter.hpp"
#include "attention_layers.hpp"

namespace examples {

inline double seconds_of(const auto& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// What memories hold on to, without the scratch that they keep between calls: copies start without it. The program
/// includes heap_hooks.hpp.
inline std::optional<std::int64_t> bytes_of(const AttentionLayers& attention) {
  if (!heap_meter::kHeapIsMetered) return std::nullopt;
  const std::int64_t before = heap_meter::live();
  const std::vector<HeadMemory> copies = attention.memories();
  return heap_meter::live() - before;
}

}  // namespace examples
