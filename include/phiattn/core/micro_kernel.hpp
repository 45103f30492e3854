#pragma once

// The loops inside every dense product. Next: core/product.hpp.

#include <phiattn/core/packet.hpp>

#include <algorithm>

namespace phiattn::detail {

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
EIGEN_ALWAYS_INLINE void multiply_tile(Index k, Strided<const S> a, Strided<const S> b, Strided<S> out,
                                       bool add) {
  using namespace Eigen::internal;
  using P = Packet<S>;
  P sums[Rows * Packets];
  const auto place = [&](auto i) PHIATTN_INLINE {
    return out.data + (i / Packets) * out.row + (i % Packets) * kPacket<S>;
  };
  unroll<Rows * Packets>([&](auto i)
                             PHIATTN_INLINE { sums[i] = add ? ploadu<P>(place(i)) : pset1<P>(S(0)); });
  for (Index l = 0; l < k; ++l, a.data += a.col, b.data += b.row) {
    P row[Packets];
    unroll<Packets>([&](auto j) PHIATTN_INLINE { row[j] = ploadu<P>(b.data + j * kPacket<S>); });
    unroll<Rows>([&](auto i) PHIATTN_INLINE {
      const P factor = pset1<P>(a.data[i * a.row]);
      unroll<Packets>([&](auto j) PHIATTN_INLINE {
        sums[i * Packets + j] = pmadd(factor, row[j], sums[i * Packets + j]);
      });
    });
  }
  unroll<Rows * Packets>([&](auto i) PHIATTN_INLINE { pstoreu(place(i), sums[i]); });
}

// Packets as template arguments lose their alignment attribute, which does no harm here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"

/// packed (depth, width) <- b (depth, cols), and 0 beyond `cols`.
template <class S>
void pack(Strided<const S> b, Index depth, Index cols, Index width, S* packed) {
  using namespace Eigen::internal;
  constexpr int kWidth = static_cast<int>(kPacket<S>);
  Index l = 0;
  if (cols == width && b.col == 1) {
    for (; l < depth; ++l) std::copy_n(b.at(l, 0).data, width, packed + l * width);
  } else if (cols == width && b.row == 1 && kWidth > 1) {
    for (; l + kWidth <= depth; l += kWidth) {
      for (Index j = 0; j < width; j += kWidth) {
        PacketBlock<Packet<S>, kWidth> block;
        unroll<kWidth>([&](auto i)
                           PHIATTN_INLINE { block.packet[i] = ploadu<Packet<S>>(b.at(l, j + i).data); });
        ptranspose(block);
        unroll<kWidth>([&](auto i)
                           PHIATTN_INLINE { pstoreu(packed + (l + i) * width + j, block.packet[i]); });
      }
    }
  }
  for (; l < depth; ++l) {
    for (Index j = 0; j < width; ++j) packed[l * width + j] = j < cols ? *b.at(l, j).data : S(0);
  }
}

#pragma GCC diagnostic pop

}  // namespace phiattn::detail
