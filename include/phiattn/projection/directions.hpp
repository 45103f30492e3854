#pragma once

// The directions of the frequencies.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/core/rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace phiattn::inline PHIATTN_ABI {

/// How the unit vectors u_1 ... u_h are chosen; each alone is uniform on the sphere (hadamard: nearly).
enum class Directions {
  iid,         ///< independent
  orthogonal,  ///< independent blocks of d rows, each Haar on the orthogonal group (Yu et al. 2016)
  simplex,     ///< independent blocks of d rows at equal, obtuse angles, Haar rotated (Reid et al. 2023)
  hadamard,    ///< independent blocks H D1 H D2 H D3 of signs, O(log d) a row and token (Yu et al. 2016)
};

namespace detail {

/// Rows <- their Gram-Schmidt orthonormalisation; no more rows than columns. Gaussian rows become Haar.
///
/// It is QR with R_jj > 0. A QR that takes other signs for R, as Householder's does, is not Haar (Mezzadri
/// 2007): it would bias the kernel by 19 % at d = 8. Twice is enough for orthogonality to rounding (Kahan, in
/// Parlett 1980).
template <class S>
void orthonormalise(Rows<S> rows) {
  using Row = Eigen::Map<RowVector<S>>;
  for (Index i = 0; i < rows.rows; ++i) {
    Row row(rows.row(i), rows.cols);
    for (int pass = 0; pass < 2; ++pass) {
      for (Index j = 0; j < i; ++j) {
        const Row done(rows.row(j), rows.cols);
        row -= row.dot(done) * done;
      }
      row /= row.norm();
    }
  }
}

/// d orthonormal rows r_i <- the d vertices of a regular simplex around the origin, u_i . u_j = -1/(d-1):
///
///     u_i = sqrt(d/(d-1)) r_i - (sqrt(d) + 1) / (d-1)^(3/2) c   for i < d,     u_d = c / sqrt(d-1),
///     c = r_1 + ... + r_{d-1}                                                        (Reid et al. 2023)
///
/// They span d - 1 dimensions. A single row stays what it is.
template <class S>
void make_simplex(Rows<S> rows) {
  using Row = Eigen::Map<RowVector<S>>;
  const Index last = rows.rows - 1;
  if (last == 0) return;
  const auto n = static_cast<S>(last);
  Row c(rows.row(last), rows.cols);
  c.setZero();
  for (Index i = 0; i < last; ++i) c += Row(rows.row(i), rows.cols);
  for (Index i = 0; i < last; ++i) {
    Row row(rows.row(i), rows.cols);
    row = std::sqrt((n + 1) / n) * row - ((std::sqrt(n + 1) + 1) / (n * std::sqrt(n))) * c;
  }
  c /= std::sqrt(n);
}

}  // namespace detail

/// The directions of h frequencies in d dimensions, (h, d), unit rows, for all kinds but hadamard.
///
/// All start from the same Gaussian rows; iid normalises each, orthogonal orthonormalises them d at a time,
/// simplex turns such blocks into simplices. The last block is cut to the rows that are left.
/// @throws std::invalid_argument  if h or d is less than 1; for hadamard, which is not stored as rows
/// Cost: h d normals; orthogonal and simplex also O(h d^2), simplex with h rounded up to whole blocks.
template <detail::ComputeScalar S = double>
Matrix<S> sample_directions(Index h, Index d, Directions kind, const Philox& random) {
  detail::check_at_least("number of directions", h, 1);
  detail::check_at_least("dimension of the directions", d, 1);
  // Every vertex of a simplex takes the whole block to make.
  Matrix<S> rows(kind == Directions::simplex ? (h + d - 1) / d * d : h, d);
  for (Index i = 0; i < rows.size(); ++i)
    rows.data()[i] = static_cast<S>(random.normal(static_cast<std::uint64_t>(i)));
  switch (kind) {
    case Directions::iid:
      for (Index i = 0; i < h; ++i) rows.row(i) /= rows.row(i).norm();
      break;
    case Directions::orthogonal:
      for (Index i = 0; i < h; i += d) detail::orthonormalise<S>(rows.middleRows(i, (std::min)(d, h - i)));
      break;
    case Directions::simplex:
      for (Index i = 0; i < h; i += d) {
        detail::orthonormalise<S>(rows.middleRows(i, d));
        detail::make_simplex<S>(rows.middleRows(i, d));
      }
      rows.conservativeResize(h, d);
      break;
    case Directions::hadamard:
      detail::fail_argument("directions: hadamard rows are not stored; sample_projection() makes them");
    default:
      detail::fail_argument("directions: not one of the kinds of phiattn::Directions");
  }
  return rows;
}

}  // namespace phiattn::inline PHIATTN_ABI
