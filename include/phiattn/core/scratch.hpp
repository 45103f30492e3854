#pragma once

// Working memory: of a call, and of an object. Next: core/calibration.hpp.

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

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

/// Makes room for (rows, cols) without giving any up.
template <class M>
void reserve(M& matrix, Index rows, Index cols) {
  if (matrix.rows() < rows || matrix.cols() != cols) matrix.resize(std::max(rows, matrix.rows()), cols);
}

/// Scratch that an object keeps for its calls, so that a warmed-up object allocates nothing. Const calls may run at the
/// same time: the first takes the scratch, the others bring their own. Copies of the object start without.
template <class T>
class KeptScratch {
 public:
  KeptScratch() = default;
  KeptScratch(const KeptScratch&) {}
  KeptScratch& operator=(const KeptScratch&) { return *this; }
  KeptScratch(KeptScratch&& other) noexcept : kept_(std::move(other.kept_)) {}
  KeptScratch& operator=(KeptScratch&& other) noexcept {
    kept_ = std::move(other.kept_);
    return *this;
  }
  ~KeptScratch() = default;

  /// For calls that have the object to themselves.
  T* operator->() { return &kept_; }
  T& operator*() { return kept_; }

  /// For const calls: use(scratch).
  template <class Use>
  decltype(auto) with(const Use& use) const {
    if (busy_.test_and_set(std::memory_order_acquire)) {
      T own;
      return use(own);
    }
    const Release release{busy_};
    return use(kept_);
  }

 private:
  struct Release {
    std::atomic_flag& busy;
    ~Release() { busy.clear(std::memory_order_release); }
  };

  mutable T kept_;
  mutable std::atomic_flag busy_;
};

}  // namespace phiattn::detail
