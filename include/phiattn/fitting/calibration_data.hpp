#pragma once

// Queries and keys that constants are fitted to.
//
// What is fitted in this room is fitted off the way of a call, in double. Each function is a template on that type, which
// is never deduced: whoever includes a header and fits nothing compiles nothing.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>

#include <cmath>
#include <string>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Rows of `x` times `factor`: at least one of them, and all finite.
template <class S>
Matrix<S> calibration_rows(const std::string& name, const Input<S>& x, S factor = 1) {
  check_at_least(("rows of " + name).c_str(), x.rows(), 1);
  Matrix<S> rows(x.rows(), x.cols());
  x.load(0, S(1), rows);
  for (Index i = 0; i < rows.rows(); ++i) {
    for (Index l = 0; l < rows.cols(); ++l) {
      if (std::isfinite(rows(i, l))) continue;
      fail_argument(name + "(" + std::to_string(i) + ", " + std::to_string(l) + "): got " +
                    number(static_cast<double>(rows(i, l))) + ", expected a finite number");
    }
  }
  return factor * rows;
}

/// Queries (n_q, d) and keys (n_k, d) as a similarity sees them: times sqrt(scale) on each side.
/// @throws std::invalid_argument  if either is empty or not finite, if they differ in d, or on a scale out of range
template <class S>
struct CalibrationData {
  CalibrationData(const Input<S>& queries, const Input<S>& keys, double scale = 1) {
    check_equal("columns of q", queries.cols(), "columns of k", keys.cols());
    check_at_least("columns of q", queries.cols(), 1);
    const auto factor = static_cast<S>(std::sqrt(checked_positive("scale", scale)));
    q = calibration_rows("q", queries, factor);
    k = calibration_rows("k", keys, factor);
  }

  Matrix<S> q, k;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
