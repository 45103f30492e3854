#pragma once

// Reading ahead of the computation.

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Rows that lie somewhere in memory, `stride` bytes apart.
struct Span {
  const char* data = nullptr;
  Index rows = 0;
  Index bytes = 0;  // of a row
  Index stride = 0;

  static Span of(const char* data, Index rows, Index bytes, Index stride) {
    if (bytes == stride) return {data, std::min<Index>(rows, 1), rows * bytes, 0};
    return {data, rows, bytes, stride};
  }
};

/// Fetches spans into the cache, one line at each call: from inside loops that leave the memory idle, since a loop that
/// only loads waits for every line. Nothing but time depends on it.
class Prefetch {
 public:
  using Spans = std::array<Span, 4>;

  Prefetch() = default;  // of nothing
  explicit Prefetch(const Spans& spans) : spans_(spans) {}

  EIGEN_ALWAYS_INLINE void operator()() {
    if (line_ >= end_ && !next_row()) return;
    __builtin_prefetch(line_);
    line_ += kLine;
  }

 private:
  static constexpr Index kLine = 64;

  bool next_row() {
    while (span_ < spans_.size() && spans_[span_].rows == 0) ++span_;
    if (span_ == spans_.size()) return false;
    Span& span = spans_[span_];
    line_ = span.data;
    end_ = line_ + span.bytes;
    span.data += span.stride;
    --span.rows;
    return line_ < end_;
  }

  Spans spans_{};
  std::size_t span_ = 0;
  const char* line_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
