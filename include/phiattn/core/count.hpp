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

}  // namespace phiattn::inline PHIATTN_ABI::detail
