#pragma once

// Shape and value checks: the only place that throws.

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

// Without exceptions a failed check prints its message and aborts.
#if defined(__cpp_exceptions)
#define PHIATTN_THROW(Exception, message) throw Exception(message)
#else
#define PHIATTN_THROW(Exception, message) ::phiattn::detail::abort_with(message)
#endif

namespace phiattn::inline PHIATTN_ABI::detail {

[[noreturn]] inline void abort_with(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

[[noreturn]] inline void fail_argument(const std::string& message) {
  PHIATTN_THROW(std::invalid_argument, "phiattn: " + message);
}

[[noreturn]] inline void fail_length(const std::string& message) {
  PHIATTN_THROW(std::length_error, "phiattn: " + message);
}

/// "columns of k: got 5, expected 4 (columns of q)"
inline void check_equal(const char* what, Index came, const char* reference, Index due) {
  if (came == due) return;
  fail_argument(std::string(what) + ": got " + std::to_string(came) + ", expected " + std::to_string(due) +
                " (" + reference + ")");
}

/// "chunk: got 0, expected at least 1"
inline void check_at_least(const char* what, Index came, Index least) {
  if (came >= least) return;
  fail_argument(std::string(what) + ": got " + std::to_string(came) + ", expected at least " +
                std::to_string(least));
}

/// A vector comes as a row or a column:
/// "size of log_weights: got 5, expected 4 (rows of k)", "smaller side of log_weights: got 2, expected 1 (a vector)"
inline void check_vector(const char* what, Index rows, Index cols, const char* reference, Index due) {
  if (rows * cols != due) check_equal((std::string("size of ") + what).c_str(), rows * cols, reference, due);
  if (due > 0 && (std::min)(rows, cols) != 1) {
    check_equal((std::string("smaller side of ") + what).c_str(), (std::min)(rows, cols), "a vector", 1);
  }
}

/// 4.0, 1e-320: as short as tells it from all others.
inline std::string number(double x) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  std::string shortest = text;
  if (shortest.find_first_not_of("-0123456789") == std::string::npos) shortest += ".0";
  return shortest;
}

/// "scale: got -1.0, expected a positive finite number"
[[noreturn]] inline void fail_positive(const std::string& what, double came) {
  fail_argument(what + ": got " + number(came) + ", expected a positive finite number");
}

inline double checked_positive(const char* what, double came) {
  if (!(came > 0) || !std::isfinite(came)) fail_positive(what, came);
  return came;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
