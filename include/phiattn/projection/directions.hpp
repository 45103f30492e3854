#pragma once

// The directions of the frequencies. Next: projection/projection.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>

#include <algorithm>
#include <cstdint>

namespace phiattn {

/// How the unit vectors u_1 ... u_h are chosen; each alone is uniform on the sphere.
enum class Directions {
  iid,         ///< independent
  orthogonal,  ///< independent blocks of d rows, each Haar on the orthogonal group (Yu et al. 2016)
};

namespace detail {

/// Rows <- their Gram-Schmidt orthonormalisation; no more rows than columns. Gaussian rows become Haar.
///
/// It is QR with R_jj > 0. A QR that takes other signs for R, as Householder's does, is not Haar (Mezzadri
/// 2007): it would bias the kernel by 19 % at d = 8. Twice is enough for orthogonality to rounding (Kahan, in
/// Parlett 1980).
inline void orthonormalise(MatrixRef<double> rows) {
  for (Index i = 0; i < rows.rows(); ++i) {
    auto row = rows.row(i);
    const auto done = rows.topRows(i);
    for (int pass = 0; pass < 2; ++pass) {
      const RowVector<double> components = row * done.transpose();
      row.noalias() -= components * done;
      row.normalize();
    }
  }
}

}  // namespace detail

/// The directions of h frequencies in d dimensions, (h, d), unit rows.
///
/// Both kinds start from the same Gaussian rows; iid normalises each, orthogonal orthonormalises them d at a
/// time (the last block may have fewer rows).
/// @throws std::invalid_argument  if h or d is less than 1
/// Cost: h d normals; orthogonal also O(h d^2).
inline Matrix<double> sample_directions(Index h, Index d, Directions kind, const Philox& random) {
  detail::check_at_least("number of directions", h, 1);
  detail::check_at_least("dimension of the directions", d, 1);
  Matrix<double> rows(h, d);
  for (Index i = 0; i < rows.size(); ++i) rows.data()[i] = random.normal(static_cast<std::uint64_t>(i));
  switch (kind) {
    case Directions::iid:
      rows.rowwise().normalize();
      break;
    case Directions::orthogonal:
      for (Index i = 0; i < h; i += d) detail::orthonormalise(rows.middleRows(i, std::min(d, h - i)));
      break;
    default:
      detail::fail_argument("directions: not one of the kinds of phiattn::Directions");
  }
  return rows;
}

}  // namespace phiattn
