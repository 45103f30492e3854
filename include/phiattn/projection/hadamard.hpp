#pragma once

// Frequencies that are never written down: products of sign matrices.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/core/rows.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

namespace phiattn::inline PHIATTN_ABI::detail {

/// h frequencies in blocks of D = 2^ceil(log2 d) rows, cut to d columns:
///
///     omega_i = R_i (row i of D^(-3/2) H D1 H D2 H D3),   D1, D2, D3 diagonals of random signs
///
/// (Yu et al. 2016, "Orthogonal random features": SORF). A token is padded to D numbers with zeros, which is
/// why the radii are those of D dimensions: of a row uniform on the sphere, R_i from chi(D), the first d
/// numbers would be N(0, I) exactly, and their norm chi(d). So Radii::fixed fixes the norm only where d is a
/// power of two. Rows are orthogonal in D dimensions, and E[omega_i omega_i^T] = I exactly; higher moments
/// are Gaussian only up to O(1/D^2).
/// Cost: 3 D log2(D) ceil(h/D) additions a token, which take as long as the dense product at d = 32, half as long at
/// 64 and a fifth at 256 (AVX-512, h = 256); 3 D ceil(h/D) + h numbers of memory.
template <class S>
class HadamardRows {
 public:
  /// Below this D, a row is visibly a handful of signs: use orthogonal directions.
  static constexpr Index kSmallest = 16;

  /// D
  static Index padded(Index d) { return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(d))); }

  /// @param radii  (h), of padded(d) dimensions
  template <class R>
  HadamardRows(Index d, const Eigen::MatrixBase<R>& radii, const Philox& random)
      : rows_(radii.size()),
        cols_(d),
        size_(padded(d)),
        signs_(3 * ((radii.size() + size_ - 1) / size_), size_) {
    for (Index i = 0; i < signs_.size(); ++i) {
      signs_.data()[i] = random.uniform(static_cast<std::uint64_t>(i)) < 0.5 ? S(-1) : S(1);
    }
    factors_.setZero(signs_.size() / 3);
    factors_.head(rows_) = (radii * std::pow(static_cast<double>(size_), -1.5)).template cast<S>();
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }

  /// out <- x omega^T, (n, d) -> (n, h)
  void project(Rows<const S> x, Rows<S> out) const;

  /// omega, (h, d)
  Matrix<S> matrix() const;

  HadamardRows scaled(S factor) const {
    HadamardRows rows = *this;
    rows.factors_ *= factor;
    return rows;
  }

 private:
  Index rows_;         // h
  Index cols_;         // d
  Index size_;         // D
  Matrix<S> signs_;    // (3 ceil(h/D), D): the diagonals D1, D2, D3 of each block
  Vector<S> factors_;  // (ceil(h/D) D): R_i D^(-3/2), and 0
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
extern template class HadamardRows<float>;
extern template class HadamardRows<double>;
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/projection/hadamard-inl.hpp>
#endif
