#pragma once

// Frequencies that are never written down: products of sign matrices. Next: projection/projection.hpp.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/micro_kernel.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace phiattn::detail {

/// x <- H_R x for R packets in registers, R a power of two.
template <int R, class P>
EIGEN_ALWAYS_INLINE void hadamard_in_registers(P (&x)[R]) {
  using namespace Eigen::internal;
  unroll<std::bit_width(unsigned{R}) - 1>([&](auto level) PHIATTN_INLINE {
    constexpr int kRun = 1 << level;
    unroll<R / 2>([&](auto pair) PHIATTN_INLINE {
      constexpr int kFirst = pair / kRun * 2 * kRun + pair % kRun;
      const P sum = padd(x[kFirst], x[kFirst + kRun]);
      x[kFirst + kRun] = psub(x[kFirst], x[kFirst + kRun]);
      x[kFirst] = sum;
    });
  });
}

/// A column of as many tokens as a packet holds, D numbers each: y (D, packet).
///
/// With H_1 = 1 and H_2D = [H_D H_D; H_D -H_D], the transform H_D is the product of commuting factors I x H_R x I, each of
/// which takes R rows of y, `stride` apart, to R others: D / R times R packets in registers.
/// Cost: D log2(D) additions.
template <class S>
class HadamardColumn {
 public:
  HadamardColumn(S* y, Index size) : y_(y), size_(size) {}

  /// y <- R H D1 H D2 H D3 x, the diagonals D1, D2, D3 one after the other in `signs`, R in `radii`. Of two transforms,
  /// the first ends and the second begins with the same factor, which takes both in one pass.
  void transform(const S* x, const S* signs, const S* radii) const {
    const Index top = factors() - 1;
    factor<Step::signed_first>(top, x, signs + 2 * size_);
    for (Index f = top - 1; f > 0; --f) factor<Step::plain>(f, y_, nullptr);
    factor<Step::twice>(0, y_, signs + size_);
    for (Index f = 1; f < top; ++f) factor<Step::plain>(f, y_, nullptr);
    factor<Step::twice>(top, y_, signs);
    for (Index f = top - 1; f > 0; --f) factor<Step::plain>(f, y_, nullptr);
    factor<Step::scaled_last>(0, y_, radii);
  }

 private:
  static constexpr int kRadix = 8;
  enum class Step { plain, signed_first, twice, scaled_last };

  /// D is a power of 8, times 2 or 4 at most, and at least 16: there are two factors or more.
  Index factors() const { return (std::bit_width(static_cast<std::uint64_t>(size_)) + 1) / 3; }

  template <Step How>
  void factor(Index f, const S* from, const S* diagonal) const {
    const Index stride = Index{1} << (3 * f);
    switch (std::min<Index>(kRadix, size_ / stride)) {
      case 2:
        return passes<2, How>(stride, from, diagonal);
      case 4:
        return passes<4, How>(stride, from, diagonal);
      default:
        return passes<kRadix, How>(stride, from, diagonal);
    }
  }

  template <int R, Step How>
  void passes(Index stride, const S* from, const S* diagonal) const {
    using namespace Eigen::internal;
    using P = Packet<S>;
    for (Index block = 0; block < size_; block += R * stride) {
      for (Index first = block; first < block + stride; ++first) {
        P rows[R];
        unroll<R>([&](auto i) PHIATTN_INLINE {
          const Index row = first + i * stride;
          rows[i] = ploadu<P>(from + row * kPacket<S>);
          if constexpr (How == Step::signed_first) rows[i] = pmul(rows[i], pset1<P>(diagonal[row]));
        });
        hadamard_in_registers<R>(rows);
        if constexpr (How == Step::twice) {
          unroll<R>([&](auto i)
                        PHIATTN_INLINE { rows[i] = pmul(rows[i], pset1<P>(diagonal[first + i * stride])); });
          hadamard_in_registers<R>(rows);
        }
        unroll<R>([&](auto i) PHIATTN_INLINE {
          const Index row = first + i * stride;
          if constexpr (How == Step::scaled_last) rows[i] = pmul(rows[i], pset1<P>(diagonal[row]));
          pstoreu(y_ + row * kPacket<S>, rows[i]);
        });
      }
    }
  }

  S* y_;
  Index size_;
};

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
  void project(const ConstMatrixRef<S>& x, MatrixRef<S> out) const {
    constexpr Index kTokens = kPacket<S>;
    with_scratch<S>(2 * size_, kTokens, [&](Eigen::Map<Matrix<S>> scratch) {
      S* const column = scratch.data();
      S* const y = column + size_ * kTokens;
      const HadamardColumn<S> transformed(y, size_);
      scratch.middleRows(cols_, size_ - cols_).setZero();
      for (Index t = 0; t < x.rows(); t += kTokens) {
        const Index n = std::min(kTokens, x.rows() - t);
        pack<S>({x.data() + t * x.outerStride(), 1, x.outerStride()}, cols_, n, kTokens, column);
        for (Index first = 0; first < rows(); first += size_) {
          transformed.transform(column, signs_.data() + 3 * first, factors_.data() + first);
          const Index count = std::min(size_, rows() - first);
          unpack<S>(y, count, n, {out.data() + t * out.outerStride() + first, 1, out.outerStride()});
        }
      }
    });
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
  Index rows_;         // h
  Index cols_;         // d
  Index size_;         // D
  Matrix<S> signs_;    // (3 ceil(h/D), D): the diagonals D1, D2, D3 of each block
  Vector<S> factors_;  // (ceil(h/D) D): R_i D^(-3/2), and 0
};

}  // namespace phiattn::detail
