#pragma once

// Working memory that does not outlive a call. Next: core/calibration.hpp.

#include <phiattn/core/matrix.hpp>

#include <array>
#include <cstddef>

namespace phiattn::detail {

/// Numbers of type S that with_scratch() keeps off the heap: 32 KiB.
template <class S>
inline constexpr Index kStackScratch = Index{32768} / static_cast<Index>(sizeof(S));

/// Calls use(scratch) with an uninitialised (rows, cols) matrix.
template <class S, class Use>
void with_scratch(Index rows, Index cols, const Use& use) {
  if (rows * cols <= kStackScratch<S>) {
    alignas(64) std::array<S, static_cast<std::size_t>(kStackScratch<S>)> numbers;
    use(Eigen::Map<Matrix<S>>(numbers.data(), rows, cols));
  } else {
    Matrix<S> numbers(rows, cols);
    use(Eigen::Map<Matrix<S>>(numbers.data(), rows, cols));
  }
}

}  // namespace phiattn::detail
