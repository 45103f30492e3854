#pragma once

// Queries and keys that constants are fitted to. Next: core/random.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>

#include <cmath>

namespace phiattn::detail {

/// Rows of `x` times `factor`, at least one of them.
inline Matrix<double> calibration_rows(const char* what, const Input<double>& x, double factor = 1) {
  check_at_least(what, x.rows(), 1);
  Matrix<double> rows(x.rows(), x.cols());
  x.load(0, factor, rows);
  return rows;
}

/// Queries (n_q, d) and keys (n_k, d) as a similarity sees them: times sqrt(scale) on each side.
/// @throws std::invalid_argument  if either is empty, if they differ in d, or on a scale out of range
struct CalibrationData {
  CalibrationData(const Input<double>& queries, const Input<double>& keys, double scale = 1) {
    check_equal("columns of q", queries.cols(), "columns of k", keys.cols());
    check_at_least("columns of q", queries.cols(), 1);
    const double factor = std::sqrt(checked_positive("scale", scale));
    q = calibration_rows("rows of q", queries, factor);
    k = calibration_rows("rows of k", keys, factor);
  }

  Matrix<double> q, k;
};

}  // namespace phiattn::detail
