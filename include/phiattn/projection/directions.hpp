#pragma once

// The directions of the frequencies. Next: projection/projection.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>

#include <Eigen/QR>
#include <algorithm>
#include <cstdint>

namespace phiattn {

/// How the unit vectors u_1 ... u_h are chosen; each alone is uniform on the sphere.
enum class Directions {
  iid,         ///< independent
  orthogonal,  ///< independent blocks of d rows, each orthonormal: Haar on the orthogonal group (Yu et al.
               ///< 2016)
};

namespace detail {

/// Rows <- their Gram-Schmidt orthonormalisation; at most as many rows as columns. Gaussian rows become Haar.
///
/// That is QR with R_jj > 0. Householder's QR takes the signs of R that suit its rounding, and a Q with those
/// is not Haar (Mezzadri 2007): unfixed, the kernel at d = 8 would be off by 19 %.
inline void orthonormalise(MatrixRef<double> rows) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(rows.transpose());
  const Vector<double> diagonal = qr.matrixQR().diagonal();
  rows.transpose() = qr.householderQ() * Eigen::MatrixXd::Identity(rows.cols(), rows.rows());
  for (Index j = 0; j < rows.rows(); ++j) {
    if (diagonal(j) < 0) rows.row(j) = -rows.row(j);
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
