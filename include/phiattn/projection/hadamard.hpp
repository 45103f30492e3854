#pragma once

// Frequencies that are never written down: products of sign matrices. Next: projection/projection.hpp.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace phiattn::detail {

/// Two levels of the transform at once: H_4 on four runs of n contiguous numbers each.
template <class S>
void butterfly(S* a, S* b, S* c, S* e, Index n) {
  using namespace Eigen::internal;
  const auto at = [=]<class Packet>(Index i, Packet) {
    const auto load = [i](const S* x) { return ploadu<Packet>(x + i); };
    const Packet p = padd(load(a), load(b)), q = psub(load(a), load(b));
    const Packet r = padd(load(c), load(e)), s = psub(load(c), load(e));
    pstoreu(a + i, padd(p, r));
    pstoreu(b + i, padd(q, s));
    pstoreu(c + i, psub(p, r));
    pstoreu(e + i, psub(q, s));
  };
  using Packet = typename packet_traits<S>::type;
  constexpr Index kWidth = packet_traits<S>::size;
  Index i = 0;
  for (; i + kWidth <= n; i += kWidth) at(i, Packet());
  for (; i < n; ++i) at(i, S());
}

/// y <- H y, y (D, n): the fast Walsh-Hadamard transform of every column, D a power of two, H_1 = 1 and
///
///     H_2D = [ H_D   H_D ]
///            [ H_D  -H_D ]
///
/// Cost: D log2(D) n additions, in runs of n or more contiguous numbers.
template <class S>
void walsh_hadamard(Eigen::Map<Matrix<S>>& y) {
  Index run = y.cols();
  for (; 4 * run <= y.size(); run *= 4) {
    for (S* a = y.data(); a < y.data() + y.size(); a += 4 * run)
      butterfly(a, a + run, a + 2 * run, a + 3 * run, run);
  }
  if (run == y.size()) return;
  auto upper = y.topRows(y.rows() / 2), lower = y.bottomRows(y.rows() / 2);
  upper += lower;
  lower = upper - 2 * lower;  // a - b = (a + b) - 2b
}

/// h frequencies in blocks of D = 2^ceil(log2 d) rows, cut to d columns:
///
///     omega_i = R_i (row i of D^(-3/2) H D1 H D2 H D3),   D1, D2, D3 diagonals of random signs
///
/// (Yu et al. 2016, "Orthogonal random features": SORF). A token is padded to D numbers with zeros, which is
/// why the radii are those of D dimensions: of a row uniform on the sphere, R_i from chi(D), the first d
/// numbers would be N(0, I) exactly, and their norm chi(d). So Radii::fixed fixes the norm only where d is a
/// power of two. Rows are orthogonal in D dimensions, and E[omega_i omega_i^T] = I exactly; higher moments
/// are Gaussian only up to O(1/D^2).
/// Cost: 3 D log2(D) ceil(h/D) additions a token, which overtakes the dense product somewhere from d = 64
/// (narrow vectors) to 128 (wide ones); 3 D ceil(h/D) + h numbers of memory.
template <class S>
class HadamardRows {
 public:
  /// Below this D, a row is visibly a handful of signs: use orthogonal directions.
  static constexpr Index kSmallest = 16;

  /// D
  static Index padded(Index d) { return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(d))); }

  /// @param radii  (h), of padded(d) dimensions
  HadamardRows(Index d, const Vector<double>& radii, const Philox& random)
      : cols_(d), size_(padded(d)), signs_(3 * ((radii.size() + size_ - 1) / size_), size_) {
    for (Index i = 0; i < signs_.size(); ++i) {
      signs_.data()[i] = random.uniform(static_cast<std::uint64_t>(i)) < 0.5 ? S(-1) : S(1);
    }
    factors_ = (radii * std::pow(static_cast<double>(size_), -1.5)).template cast<S>();
  }

  Index rows() const { return factors_.size(); }
  Index cols() const { return cols_; }

  /// out <- x omega^T, (n, d) -> (n, h)
  void project(const ConstMatrixRef<S>& x, MatrixRef<S> out) const {
    // Several tokens side by side make every run of the transform a long one.
    const Index together = std::clamp<Index>(kStackScratch<S> / size_, 1, kTokens);
    for (Index t = 0; t < x.rows(); t += together) {
      const Index n = std::min(together, x.rows() - t);
      with_scratch<S>(size_, n, [&](Eigen::Map<Matrix<S>> y) {
        for (Index first = 0, block = 0; first < rows(); first += size_, ++block) {
          const Index count = std::min(size_, rows() - first);
          y.topRows(cols_) = x.middleRows(t, n).transpose();
          y.bottomRows(size_ - cols_).setZero();
          for (Index factor = 2; factor >= 0; --factor) {  // D3, D2, D1
            y.array().colwise() *= signs_.row(3 * block + factor).transpose().array();
            walsh_hadamard(y);
          }
          out.block(t, first, n, count) =
              y.topRows(count).transpose() * factors_.segment(first, count).asDiagonal();
        }
      });
    }
  }

  /// omega, (h, d)
  Matrix<S> matrix() const {
    Matrix<S> transposed(cols_, rows());
    project(Matrix<S>::Identity(cols_, cols_), transposed);
    return transposed.transpose();
  }

  HadamardRows scaled(S factor) const {
    HadamardRows rows = *this;
    rows.factors_ *= factor;
    return rows;
  }

 private:
  static constexpr Index kTokens = 16;

  Index cols_;         // d
  Index size_;         // D
  Matrix<S> signs_;    // (3 ceil(h/D), D): the diagonals D1, D2, D3 of each block
  Vector<S> factors_;  // R_i D^(-3/2)
};

}  // namespace phiattn::detail
