#pragma once

// How many there are of what moves away.

#include <phiattn/core/matrix.hpp>

#include <utility>

namespace phiattn::inline PHIATTN_ABI::detail {

/// A number that is 0 where it was moved from, as the size of what moved with it.
class Count {
 public:
  Count() = default;
  Count(const Count&) = default;
  Count& operator=(const Count&) = default;
  Count(Count&& other) noexcept : n_(std::exchange(other.n_, 0)) {}
  Count& operator=(Count&& other) noexcept {
    n_ = std::exchange(other.n_, 0);
    return *this;
  }
  ~Count() = default;

  operator Index() const { return n_; }
  Count& operator+=(Index n) {
    n_ += n;
    return *this;
  }
  Count& operator-=(Index n) { return *this += -n; }

 private:
  Index n_ = 0;
};

/// Room to make for `needed` rows where there is room for `capacity`: twice as much, or half as much again once that is
/// more than 16 MiB.
inline Index grown(Index needed, Index capacity, Index row_bytes) {
  constexpr Index kLarge = Index{1} << 24;
  const Index more = capacity * row_bytes < kLarge ? capacity : capacity / 2;
  return needed > capacity + more ? needed : capacity + more;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
