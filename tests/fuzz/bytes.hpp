// What a fuzzer's bytes stand for.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string>

#include "support/problem.hpp"

namespace fuzz {

using phiattn::Index;
using phiattn::Matrix;

inline void require(bool holds, const std::string& subject, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s: %s\n", subject.c_str(), what);
  std::abort();
}

/// A result within the tolerance of its definition.
inline void require_close(double error, const std::string& subject, const char* what) {
  if (error <= 1) return;
  std::fprintf(stderr, "%s: %s: %.3g times the tolerance\n", subject.c_str(), what, error);
  std::abort();
}

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  bool left() { return bytes_.remaining_bytes() > 0; }
  bool flag() { return bytes_.ConsumeBool(); }
  Index between(Index least, Index most) { return bytes_.ConsumeIntegralInRange(least, most); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<Index>(values.size()) - 1)];
  }

  /// Numbers in general position: the bytes say which.
  template <class S>
  Matrix<S> gaussian(Index rows, Index cols, double size = 1) {
    return laws::gaussian<S>(rows, cols, static_cast<std::uint64_t>(between(0, 0xFFFF)), size);
  }

 private:
  FuzzedDataProvider bytes_;
};

/// Log-weights of n tokens, of one of these sizes, of which some do not exist; or none.
template <class S>
phiattn::Vector<S> draw_log_weights(Bytes& bytes, Index n, std::initializer_list<double> sizes) {
  if (!bytes.flag()) return {};
  phiattn::Vector<S> log_weights = bytes.gaussian<S>(n, 1, bytes.one_of(sizes));
  const Index missing = bytes.between(0, (1 << 20) - 1);
  for (Index j = 0; j < n; ++j) {
    if ((missing >> j & 1) != 0) log_weights(j) = -std::numeric_limits<S>::infinity();
  }
  return log_weights;
}

}  // namespace fuzz
