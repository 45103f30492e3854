#pragma once

// What a Gaussian closure is told.

#include <phiattn/core/check.hpp>

#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// Covariance of the keys: S of x' S x, or its diagonal alone.
enum class Covariance { full, diagonal };

struct ClosureOptions {
  Covariance covariance = Covariance::full;

  /// c of tau = min(1, c sqrt(2 ln N) / sigma), the inverse temperature at which N scores of deviation sigma freeze;
  /// at least 0. Infinity takes the cap away.
  double freezing = 0.35;

  /// The covariance term may take outputs beyond the values that were seen. This holds every coordinate between the
  /// smallest and the largest of them, and counts the rows where it had to (AttentionStatus::clamped_rows).
  bool clamp = false;
};

namespace detail {

inline void check_same(const ClosureOptions& a, const ClosureOptions& b) {
  if (a.covariance != b.covariance) fail_argument("merge: the memories differ in covariance");
  if (a.freezing != b.freezing) fail_argument("merge: the memories differ in freezing");
  if (a.clamp != b.clamp) fail_argument("merge: the memories differ in clamp");
}

inline const ClosureOptions& checked(const ClosureOptions& options) {
  if (!(options.freezing >= 0)) {
    fail_argument("freezing: got " + number(options.freezing) + ", expected a number of at least 0");
  }
  return options;
}

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI
