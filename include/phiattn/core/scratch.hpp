#pragma once

// Working memory of a map or a kernel.

#include <phiattn/core/workspace.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Numbers of type S that stay in the first-level cache: 32 KiB.
template <class S>
inline constexpr Index kCacheScratch = Index{32768} / static_cast<Index>(sizeof(S));

/// Calls use(scratch) with an uninitialised (rows, cols) matrix.
template <class S, class Use>
void with_scratch(Index rows, Index cols, const Use& use) {
  Workspace::Frame frame;
  use(Eigen::Map<Matrix<S>>(frame.numbers<S>(rows * cols), rows, cols));
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
