#pragma once

// How products are computed: included by core/product.hpp where they are not compiled elsewhere.

#include <phiattn/core/micro_kernel.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace phiattn::inline PHIATTN_ABI::detail {

/// out (n, m) <- [out +] a (n, k) b (k, m).
///
/// Operands are chunks that lie in the second-level cache. b streams from there in panels of two packets, and a one
/// number at a time: no packing as in Goto & van de Geijn 2008, except of what would stream badly (a transposed b,
/// rows that lie far apart, columns that fill no packet).
template <class S>
struct Product {
  Index n, k, m;
  Strided<const S> a, b;
  Strided<S> out;
  bool add = false;
  Index a_diagonal = kNoDiagonal;    // a(i, l) counts only if l <= i + a_diagonal, up to the tile of its row
  Index out_diagonal = kNoDiagonal;  // out(i, j) is asked for only if j <= i + out_diagonal

  /// Rows of a tile of two packets, of a smaller one, and how many products one pass sums up.
  static constexpr int kRows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 6;
  static constexpr int kFewRows = kRows / 2;
  static constexpr Index kDepth = 256;

  void run() const {
    if (k <= kDepth) return run_block();
    for (Index first = 0; first < k; first += kDepth) block(first).run_block();
  }

 private:
  static constexpr Index kWidth = kPacket<S>;

  /// The part of the sums over [first, first + kDepth).
  Product block(Index first) const {
    Product part = *this;
    part.k = (std::min)(kDepth, k - first);
    part.a = a.at(0, first);
    part.b = b.at(first, 0);
    part.add = add || first > 0;
    part.a_diagonal = a_diagonal - first;
    return part;
  }

  void run_block() const {
    Index j = 0;
    if (n < kFewRows && b.col == 1) {
      for (; j + 4 * kWidth <= m; j += 4 * kWidth) rows<4>(j, b.at(0, j));
    }
    for (; j + 2 * kWidth <= m; j += 2 * kWidth) panel<2>(j);
    for (; j + kWidth <= m; j += kWidth) panel<1>(j);
    if (j < m) ragged_panel(j);
  }

  template <int Packets>
  void panel(Index j) const {
    constexpr Index kFar = 4096 / Index{sizeof(S)};  // such rows share a few lines of the first-level cache
    if (b.col == 1 && (b.row < kFar || n < 4 * kRows)) {
      rows<Packets>(j, b.at(0, j));
    } else {
      alignas(64) std::array<S, static_cast<std::size_t>(kDepth * Packets * kWidth)> packed;
      pack(b.at(0, j), k, Packets * kWidth, Packets * kWidth, packed.data());
      rows<Packets>(j, {packed.data(), Packets * kWidth, 1});
    }
  }

  template <int Packets>
  void rows(Index j, Strided<const S> b_panel) const {
    Index i = std::max<Index>(0, j - out_diagonal);
    const auto tiles = [&]<int Rows>() {
      if (i + Rows > n) return;
      i = multiply_rows<S, Rows, Packets>(i, n, k, a_diagonal, a, b_panel, out.at(0, j), add);
    };
    if constexpr (Packets == 2) tiles.template operator()<kRows>();
    if constexpr (Packets <= 2) tiles.template operator()<kFewRows>();
    if constexpr (Packets == 4) tiles.template operator()<2>();
    tiles.template operator()<1>();
  }

  /// The last columns, fewer than a packet, by way of a buffer that is a packet wide.
  void ragged_panel(Index j) const {
    const Index cols = m - j;
    alignas(64) std::array<S, static_cast<std::size_t>(kDepth * kWidth)> packed;
    alignas(64) std::array<S, static_cast<std::size_t>(kRows * kWidth)> sums{};
    pack(b.at(0, j), k, cols, kWidth, packed.data());
    for (Index i = 0; i < n; i += kRows) {
      const Index rows = std::min<Index>(kRows, n - i);
      const auto each_row = [&](auto copy) {
        for (Index t = 0; t < rows; ++t) copy(out.at(i + t, j).data, sums.data() + t * kWidth);
      };
      if (add) each_row([&](const S* x, S* sum) { std::copy_n(x, cols, sum); });
      Product{rows,          k, kWidth, a.at(i, 0), {packed.data(), kWidth, 1}, {sums.data(), kWidth, 1}, add,
              a_diagonal + i}
          .run_block();
      each_row([&](S* x, const S* sum) { std::copy_n(sum, cols, x); });
    }
  }
};

template <class T>
Strided<T> strided(const Rows<T>& x) {
  return {x.data, x.stride, 1};
}
template <class T>
Strided<T> transposed(const Rows<T>& x) {
  return {x.data, 1, x.stride};
}

template <class S>
void multiply(Rows<const S> a, Rows<const S> b, Rows<S> out) {
  Product<S>{out.rows, a.cols, out.cols, strided(a), strided(b), strided(out)}.run();
}

template <class S>
void multiply_add(Rows<const S> a, Rows<const S> b, Rows<S> out, Index diagonal) {
  Product<S>{out.rows, a.cols, out.cols, strided(a), strided(b), strided(out), true, diagonal}.run();
}

/// out (Few, n) <- a (Few, k) b (n, k)', several rows of b at a time, so that no sum waits for itself and each number of b
/// is loaded once.
template <class S, int Few>
EIGEN_DONT_INLINE void dot_rows(const Rows<const S>& a, const Rows<const S>& b, const Rows<S>& out) {
  using P = Packet<S>;
  constexpr int kTogether = Few == 1 ? 8 : Few <= 3 ? 4 : 2;
  const Index whole = b.cols / kPacket<S> * kPacket<S>;
  in_steps<kTogether>(b.rows, 1, [&]<int N>(Index j) {
    const S* const row = b.row(j);
    P sums[std::size_t{Few * N}];
    unroll<Few * N>([&](auto s) PHIATTN_INLINE { sums[s] = pset1<P>(S(0)); });
    for (Index l = 0; l < whole; l += kPacket<S>) {
      P of_a[std::size_t{Few}];
      unroll<Few>([&](auto i) PHIATTN_INLINE { of_a[i] = ploadu<P>(a.data + i * a.stride + l); });
      unroll<N>([&](auto r) PHIATTN_INLINE {
        const P of_b = ploadu<P>(row + r * b.stride + l);
        unroll<Few>([&](auto i)
                        PHIATTN_INLINE { sums[r * Few + i] = pmadd(of_a[i], of_b, sums[r * Few + i]); });
      });
    }
    unroll<Few * N>([&](auto s) PHIATTN_INLINE {
      constexpr int kRow = s / Few, kFew = s % Few;
      S sum = predux(sums[s]);
      for (Index l = whole; l < b.cols; ++l) sum += a(kFew, l) * row[kRow * b.stride + l];
      out(kFew, j + kRow) = sum;
    });
  });
}

template <class S>
void multiply_transposed(Rows<const S> a, Rows<const S> b, Rows<S> out, Index diagonal) {
  switch (a.rows) {  // too few for the packing to pay
    case 1:
      return dot_rows<S, 1>(a, b, out);
    case 2:
      return dot_rows<S, 2>(a, b, out);
    case 3:
      return dot_rows<S, 3>(a, b, out);
    case 4:
      return dot_rows<S, 4>(a, b, out);
    default:
      break;
  }
  Product<S>{out.rows,     a.cols, out.cols,    strided(a), transposed(b),
             strided(out), false,  kNoDiagonal, diagonal}
      .run();
}

template <class S>
void transposed_multiply_add(Rows<const S> a, Rows<const S> b, Rows<S> out) {
  Product<S>{out.rows, a.rows, out.cols, transposed(a), strided(b), strided(out), true}.run();
}

template <class S>
void add_and_read(Rows<const S> b, Rows<const S> v, Rows<const S> a, Rows<S> sums, Rows<S> out) {
  // Stores of packets may alias whatever lies in memory: pointers and counts are better kept in registers.
  const Index m = sums.rows, stride = sums.stride;
  const S *weights_a = a.data, *weights_b = b.data;
  const auto columns = [&]<class P, int N>(Index j) {
    constexpr Index kWidth = unpacket_traits<P>::size;
    P value[std::size_t{N}], read[std::size_t{N}];
    unroll<N>([&](auto i) PHIATTN_INLINE {
      value[i] = ploadu<P>(v.data + j + i * kWidth);
      read[i] = pset1<P>(S(0));
    });
    S* row = sums.data + j;
    for (Index l = 0; l < m; ++l, row += stride) {
      const P weight_b = pset1<P>(weights_b[l]);
      const P weight_a = pset1<P>(weights_a[l]);
      unroll<N>([&](auto i) PHIATTN_INLINE {
        const P sum = pmadd(weight_b, value[i], ploadu<P>(row + i * kWidth));
        pstoreu(row + i * kWidth, sum);
        read[i] = pmadd(weight_a, sum, read[i]);
      });
    }
    unroll<N>([&](auto i) PHIATTN_INLINE { pstoreu(out.data + j + i * kWidth, read[i]); });
  };
  const Index whole = out.cols / kPacket<S> * kPacket<S>;
  in_steps<4>(whole, kPacket<S>, [&]<int N>(Index j) { columns.template operator()<Packet<S>, N>(j); });
  for (Index j = whole; j < out.cols; ++j) columns.template operator()<S, 1>(j);
}

template <class S>
bool all_finite(Rows<const S> x) {
  using P = Packet<S>;
  // 0 times any of the others is NaN.
  constexpr int kTogether = 4;  // so that no sum waits for itself
  P sums[std::size_t{kTogether}];
  unroll<kTogether>([&](auto s) PHIATTN_INLINE { sums[s] = pset1<P>(S(0)); });
  S rest = 0;
  const Index whole = x.cols / kPacket<S> * kPacket<S>;
  for (Index t = 0; t < x.rows; ++t) {
    const S* row = x.row(t);
    in_steps<kTogether>(whole, kPacket<S>, [&]<int N>(Index i) PHIATTN_INLINE {
      unroll<N>([&](auto s) PHIATTN_INLINE {
        sums[s] = pmadd(ploadu<P>(row + i + s * kPacket<S>), pset1<P>(S(0)), sums[s]);
      });
    });
    for (Index i = whole; i < x.cols; ++i) rest += row[i] * S(0);
  }
  unroll<kTogether>([&](auto s) PHIATTN_INLINE { rest += predux(sums[s]); });
  return rest == 0;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
