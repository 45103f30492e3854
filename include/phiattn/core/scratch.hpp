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

/// Scratch of one call in one block, from which matrices are cut. Several large blocks would each go back to the system
/// after a call, only for the next one to fault in their pages one by one.
template <class S>
class ScratchBlock {
 public:
  /// cuts(block), which calls matrix() and vector() for what it returns: once to learn how much it takes, then for good.
  /// What an earlier call returned is lost.
  template <class Cuts>
  auto cut(const Cuts& cuts) {
    used_ = 0;
    next_ = nullptr;
    cuts(*this);
    if (block_.size() < used_) block_.resize(used_);
    next_ = block_.data();
    return cuts(*this);
  }

  Eigen::Map<Matrix<S>> matrix(Index rows, Index cols) { return {numbers(rows * cols), rows, cols}; }
  Eigen::Map<Vector<S>> vector(Index n) { return {numbers(n), n}; }

 private:
  /// As many numbers as whole cache lines hold.
  S* numbers(Index n) {
    constexpr Index kLine = Index{64} / Index{sizeof(S)};
    const Index taken = (n + kLine - 1) / kLine * kLine;
    if (!next_) {
      used_ += taken;
      return nullptr;
    }
    return std::exchange(next_, next_ + taken);
  }

  Vector<S> block_;
  Index used_ = 0;
  S* next_ = nullptr;
};

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
