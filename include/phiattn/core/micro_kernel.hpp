#pragma once

// The loops inside every dense product.

#include <phiattn/core/packet.hpp>

#include <algorithm>
#include <cstddef>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// An operand of a product as it lies in memory.
template <class S>
struct Strided {
  S* data;
  Index row;  // from one row to the next
  Index col;

  Strided at(Index i, Index j) const { return {data + i * row + j * col, row, col}; }
};

/// out (Rows, Packets packets) <- [out +] a (Rows, k) b (k, Packets packets), all sums in registers. The columns of b
/// and of out are contiguous.
template <class S, int Rows, int Packets>
EIGEN_ALWAYS_INLINE void multiply_tile(Index k, const S* a, auto a_row, auto a_col, Strided<const S> b,
                                       Strided<S> out, bool add) {
  using P = Packet<S>;
  P sums[std::size_t{Rows * Packets}];
  // One pointer that walks down the rows: a pointer for each would not leave the loop below its registers.
  const auto each_row = [&](const auto& visit) {
    S* row = out.data;
    unroll<Rows>([&](auto i) PHIATTN_INLINE {
      unroll<Packets>([&](auto j) PHIATTN_INLINE { visit(sums[i * Packets + j], row + j * kPacket<S>); });
      row += out.row;
    });
  };
  if (add) {
    each_row([](P& sum, const S* x) PHIATTN_INLINE { sum = ploadu<P>(x); });
  } else {
    unroll<Rows * Packets>([&](auto i) PHIATTN_INLINE { sums[i] = pset1<P>(S(0)); });
  }
  for (Index l = 0; l < k; ++l, a += a_col, b.data += b.row) {
    P row[std::size_t{Packets}];
    unroll<Packets>([&](auto j) PHIATTN_INLINE { row[j] = ploadu<P>(b.data + j * kPacket<S>); });
    unroll<Rows>([&](auto i) PHIATTN_INLINE {
      const P factor = pset1<P>(a[i * a_row]);
      unroll<Packets>([&](auto j) PHIATTN_INLINE {
        sums[i * Packets + j] = pmadd(factor, row[j], sums[i * Packets + j]);
      });
    });
  }
  each_row([](const P& sum, S* x) PHIATTN_INLINE { pstoreu(x, sum); });
}

/// The tiles of rows [first, n) one below the other, as long as they are whole; returns the first row that is left.
/// a(i, l) counts only if l <= i + diagonal, up to the tile of its row. A function of its own, so that the tile has the
/// registers to itself.
template <class S, int Rows, int Packets>
EIGEN_DONT_INLINE Index multiply_rows(Index first, Index n, Index k, Index diagonal, Strided<const S> a,
                                      Strided<const S> b, Strided<S> out, bool add) {
  Index i = first;
  const auto tiles = [&](auto row, auto col) PHIATTN_INLINE {
    for (; i + Rows <= n; i += Rows) {
      const Index depth = std::clamp<Index>(i + Rows + diagonal, 0, k);
      multiply_tile<S, Rows, Packets>(depth, a.data + i * row, row, col, b, out.at(i, 0), add);
    }
  };
  // Constant strides leave the innermost loop more registers.
  constexpr std::integral_constant<Index, 1> kOne;
  if (a.col == 1) {
    tiles(a.row, kOne);
  } else {
    tiles(kOne, a.col);
  }
  return i;
}

// Packets as template arguments lose their alignment attribute, which does no harm here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"

/// As many packets as numbers in each, transposed in registers: block.packet[i] <- from(i), then to(i, its transpose).
template <class S, class From, class To>
EIGEN_ALWAYS_INLINE void transpose_packets(const From& from, const To& to) {
  constexpr int kWidth = static_cast<int>(kPacket<S>);
  PacketBlock<Packet<S>, kWidth> block;
  unroll<kWidth>([&](auto i) PHIATTN_INLINE { block.packet[i] = ploadu<Packet<S>>(from(i)); });
  if constexpr (kWidth > 1) ptranspose(block);
  unroll<kWidth>([&](auto i) PHIATTN_INLINE { pstoreu(to(i), block.packet[i]); });
}

/// packed (depth, width) <- b (depth, cols), and 0 beyond `cols`.
template <class S>
void pack(Strided<const S> b, Index depth, Index cols, Index width, S* packed) {
  constexpr Index kWidth = kPacket<S>;
  Index l = 0;
  if (cols == width && b.col == 1) {
    for (; l < depth; ++l) std::copy_n(b.at(l, 0).data, width, packed + l * width);
  } else if (cols == width && b.row == 1) {
    for (; l + kWidth <= depth; l += kWidth) {
      for (Index j = 0; j < width; j += kWidth) {
        transpose_packets<S>([&](Index i) PHIATTN_INLINE { return b.at(l, j + i).data; },
                             [&](Index i) PHIATTN_INLINE { return packed + (l + i) * width + j; });
      }
    }
  }
  for (; l < depth; ++l) {
    for (Index j = 0; j < width; ++j) packed[l * width + j] = j < cols ? *b.at(l, j).data : S(0);
  }
}

/// b (depth, cols) <- packed (depth, packet), for b of contiguous columns.
template <class S>
void unpack(const S* packed, Index depth, Index cols, Strided<S> b) {
  constexpr Index kWidth = kPacket<S>;
  Index l = 0;
  for (; cols == kWidth && l + kWidth <= depth; l += kWidth) {
    transpose_packets<S>([&](Index i) PHIATTN_INLINE { return packed + (l + i) * kWidth; },
                         [&](Index i) PHIATTN_INLINE { return b.at(l, i).data; });
  }
  for (; l < depth; ++l) {
    for (Index j = 0; j < cols; ++j) *b.at(l, j).data = packed[l * kWidth + j];
  }
}

#pragma GCC diagnostic pop

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
