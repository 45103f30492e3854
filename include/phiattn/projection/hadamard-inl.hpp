#pragma once

// Fast Hadamard transforms: included by projection/hadamard.hpp where they are not compiled elsewhere.

#include <phiattn/core/micro_kernel.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/projection/hadamard.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace phiattn::inline PHIATTN_ABI::detail {

/// x <- H_R x for R packets in registers, R a power of two.
template <int R, class P>
EIGEN_ALWAYS_INLINE void hadamard_in_registers(P (&x)[std::size_t{R}]) {
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
  Index factors() const {
    return (static_cast<Index>(std::bit_width(static_cast<std::uint64_t>(size_))) + 1) / 3;
  }

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
    using P = Packet<S>;
    for (Index block = 0; block < size_; block += R * stride) {
      for (Index first = block; first < block + stride; ++first) {
        P rows[std::size_t{R}];
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

template <class S>
void HadamardRows<S>::project(Rows<const S> x, Rows<S> out) const {
  constexpr Index kTokens = kPacket<S>;
  Workspace::Frame frame;
  S* const column = frame.numbers<S>(size_ * kTokens);
  S* const y = frame.numbers<S>(size_ * kTokens);
  const HadamardColumn<S> transformed(y, size_);
  std::fill(column + cols_ * kTokens, column + size_ * kTokens, S(0));
  for (Index t = 0; t < x.rows; t += kTokens) {
    const Index n = (std::min)(kTokens, x.rows - t);
    pack<S>({x.row(t), 1, x.stride}, cols_, n, kTokens, column);
    for (Index first = 0; first < rows(); first += size_) {
      transformed.transform(column, signs_.data() + 3 * first, factors_.data() + first);
      unpack<S>(y, (std::min)(size_, rows() - first), n, {out.row(t) + first, 1, out.stride});
    }
  }
}

template <class S>
Matrix<S> HadamardRows<S>::matrix() const {
  const Matrix<S> eye = Matrix<S>::Identity(cols_, cols_);
  Matrix<S> transposed(cols_, rows());
  project(eye, transposed);
  return transposed.transpose();
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
