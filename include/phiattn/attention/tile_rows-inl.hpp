#pragma once

// What a tile of queries makes of a tile of keys: included by attention/tiles-inl.hpp.

#include <phiattn/attention/tiles.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// A tile of queries, which keys each of them sees, what becomes of them, and room for a tile of keys.
template <class S>
struct TiledAttention<S>::Tile {
  Rows<const S> queries;
  Index first, heads;  // row t is query first + t / heads
  const KeyRange* seen;
  bool* met;  // whether the row has seen a key
  RowSums<S> out;
  Rows<S> tokens, values, weights;
  S* tile_log_scale;
  KeyRange* here;             // the keys of the tile at hand that a row sees
  Rows<std::uint8_t> hidden;  // those among them that it does not, where masks go key by key

  Index query(Index t) const { return first + t / heads; }

  /// The keys that any of the rows [t, t + n) sees.
  KeyRange any(Index t, Index n) const {
    KeyRange any{0, 0};
    for (Index r = t; r < t + n; ++r) {
      if (here[r].begin == here[r].end) continue;
      any = any.end == 0 ? here[r]
                         : KeyRange{(std::min)(any.begin, here[r].begin), (std::max)(any.end, here[r].end)};
    }
    return any;
  }

  /// Calls take(begin, n) for each run of keys that row t sees.
  template <class Take>
  void in_runs(Index t, const Take& take) const {
    const std::uint8_t* const hides = hidden.data ? hidden.row(t) : nullptr;
    for (Index begin = here[t].begin, end; begin < here[t].end; begin = end) {
      for (end = begin + 1; hides && end < here[t].end && hides[end] == hides[begin];) ++end;
      if (!hides) end = here[t].end;
      if (!hides || hides[begin] == 0) take(begin, end - begin);
    }
  }
};

template <class S>
void TiledAttention<S>::take_tile(const Tile& tile, Rows<const S> tokens, Rows<const S> values,
                                  Index first_key) const {
  const Index n_q = tile.queries.rows;
  const KeyRange all{0, tokens.rows};
  const bool whole = !elementwise_ && std::count(tile.here, tile.here + n_q, all) == n_q;
  // 0 times a non-finite value that a row does not see is NaN.
  const bool finite = whole || all_finite<S>(values);
  const Index step = whole ? n_q : kTileStep;
  for (Index t = 0; t < n_q; t += step) {
    const Index n = (std::min)(step, n_q - t);
    const KeyRange any = whole ? all : tile.any(t, n);
    if (any.begin < any.end) take_rows(tile, t, n, any, tokens, values, first_key, finite);
  }
}

/// The rows [t, t + n), over the keys that any of them sees.
template <class S>
void TiledAttention<S>::take_rows(const Tile& tile, Index t, Index n, const KeyRange& any,
                                  Rows<const S> tokens, Rows<const S> values, Index first_key,
                                  bool finite) const {
  const Index n_k = any.end - any.begin;
  const Rows<S> weights(tile.weights.row(t) + any.begin, n, n_k, tile.weights.stride);
  const bool alike = !elementwise_ && std::count(tile.here + t, tile.here + t + n, any) == n;
  // A key that a row does not see must not sway a signed kernel's log-scale; for the others it is only waste.
  if (kernel_.positive || alike) {
    kernel_.fill(kernel_.kernel, tile.queries.middle(t, n), tokens.middle(any.begin, n_k), weights,
                 tile.tile_log_scale + t);
  } else {
    for (Index r = t; r < t + n; ++r) fill_signed_row(tile, r, tokens);
  }
  if (kernel_.positive) {
    for (Index r = t; r < t + n; ++r) {
      add_biases(tile, r, first_key);
      hide(tile, r, any, -std::numeric_limits<S>::infinity());
    }
    // Rows of whole packets.
    const Index begin = any.begin / kPacket<S> * kPacket<S>;
    in_steps<4>(n, 1, [&]<int N>(Index r) { take_positive<N>(tile, t + r, begin, any.end); });
  } else {
    for (Index r = t; r < t + n; ++r) {
      hide(tile, r, any, S(0));
      take_signed(tile, r, first_key);
    }
  }
  if (finite) {
    Index diagonal = -n;  // row t + i sees the keys up to any.begin + i + diagonal
    for (Index i = 0; i < n; ++i) diagonal = (std::max)(diagonal, tile.here[t + i].end - 1 - any.begin - i);
    multiply_add<S>(weights, values.middle(any.begin, n_k), tile.out.sums.middle(t, n),
                    alike ? kNoDiagonal : diagonal);
    return;
  }
  for (Index r = t; r < t + n; ++r) {
    tile.in_runs(r, [&](Index begin, Index count) {
      multiply_add<S>({tile.weights.row(r) + begin, 1, count, count}, values.middle(begin, count),
                      tile.out.sums.middle(r, 1));
    });
  }
}

/// What comes onto the scores of row t: its kernel's modifiers, and log-weights.
template <class S>
void TiledAttention<S>::add_biases(const Tile& tile, Index t, Index first_key) const {
  const Index begin = tile.here[t].begin, n = tile.here[t].end - begin;
  if (n == 0) return;
  S* const scores = tile.weights.row(t) + begin;
  if (kernel_.rules) kernel_.rules->apply(scores, n, tile.query(t), first_key + begin, keys_.places);
  if (keys_.log_weights) {
    Eigen::Map<RowVector<S>>(scores, n) +=
        Eigen::Map<const RowVector<S>>(keys_.log_weights + first_key + begin, n);
  }
}

/// Similarities of row t of a signed kernel with just the keys that it sees, as if these came in one go.
template <class S>
void TiledAttention<S>::fill_signed_row(const Tile& tile, Index t, Rows<const S> tokens) const {
  S* const row = tile.weights.row(t);
  S& scale = tile.tile_log_scale[t];
  tile.in_runs(t, [&](Index begin, Index n) {
    S of_run = 0;
    kernel_.fill(kernel_.kernel, tile.queries.middle(t, 1), tokens.middle(begin, n), {row + begin, 1, n, n},
                 &of_run);
    const Index before = begin - tile.here[t].begin;
    if (before == 0) scale = of_run;
    const S top = (std::max)(scale, of_run);
    Eigen::Map<RowVector<S>>(row + tile.here[t].begin, before) *= flushed_exp(scale - top);
    Eigen::Map<RowVector<S>>(row + begin, n) *= flushed_exp(of_run - top);
    std::fill_n(row + begin + n, tile.here[t].end - begin - n, S(0));
    scale = top;
  });
}

/// What row t does not see of `any`, to both sides up to whole packets, is `nothing`.
template <class S>
void TiledAttention<S>::hide(const Tile& tile, Index t, const KeyRange& any, S nothing) const {
  S* const row = tile.weights.row(t);
  const KeyRange keys = tile.here[t];
  const Index begin = any.begin / kPacket<S> * kPacket<S>;
  std::fill(row + begin, row + (keys.begin < keys.end ? keys.begin : begin), nothing);
  std::fill(row + (keys.begin < keys.end ? keys.end : begin), row + begin + padded<S>(any.end - begin),
            nothing);
  for (Index j = keys.begin; elementwise_ && j < keys.end; ++j) {
    if (tile.hidden(t, j)) row[j] = nothing;
  }
}

/// Turns log-similarities of N rows with the keys [begin, end) into weights relative to their log-scales.
template <class S>
template <int N>
void TiledAttention<S>::take_positive(const Tile& tile, Index t, Index begin, Index end) const {
  using P = Packet<S>;
  // Stores of packets may alias whatever lies in memory: strides are better kept in registers.
  const Index cols = padded<S>(end - begin), stride = tile.weights.stride;
  S* const rows = tile.weights.row(t) + begin;
  P top[std::size_t{N}], sum[std::size_t{N}];
  unroll<N>([&](auto r) PHIATTN_INLINE {
    top[r] = pset1<P>(kNothing<S>);
    sum[r] = pset1<P>(S(0));
  });
  for (Index j = 0; j < cols; j += kPacket<S>) {
    // The first argument of pmax prevails where one is NaN.
    unroll<N>([&](auto r) PHIATTN_INLINE { top[r] = pmax(top[r], ploadu<P>(rows + r * stride + j)); });
  }
  unroll<N>([&](auto r) PHIATTN_INLINE {
    tile.out.raise(t + r, predux_max(top[r]));
    top[r] = pset1<P>(tile.out.log_scale[t + r]);
  });
  for (Index j = 0; j < cols; j += kPacket<S>) {
    unroll<N>([&](auto r) PHIATTN_INLINE {
      S* x = rows + r * stride + j;
      const P weight = packet_exp_to_one<S>(P(psub(ploadu<P>(x), top[r])));
      sum[r] = padd(sum[r], weight);
      pstoreu(x, weight);
    });
  }
  unroll<N>([&](auto r) PHIATTN_INLINE { tile.out.normaliser[t + r] += predux(sum[r]); });
}

/// Turns similarities of row t of a signed kernel with the keys that it sees into weights relative to its log-scale.
template <class S>
void TiledAttention<S>::take_signed(const Tile& tile, Index t, Index first_key) const {
  const Index begin = tile.here[t].begin, n = tile.here[t].end - begin;
  if (n == 0) return;
  Eigen::Map<RowVector<S>> row(tile.weights.row(t) + begin, n);
  S tile_scale = tile.tile_log_scale[t];
  if (keys_.log_weights) {
    // A key that the row does not see must not sway its scale, heavy as it may be.
    S heaviest = -std::numeric_limits<S>::infinity();
    const auto in_weighed_runs = [&](const auto& take) {
      tile.in_runs(t, [&](Index first, Index count) {
        take(Eigen::Map<const RowVector<S>>(keys_.log_weights + first_key + first, count),
             Eigen::Map<RowVector<S>>(tile.weights.row(t) + first, count));
      });
    };
    in_weighed_runs(
        [&](const auto& log_weights, auto) { heaviest = (std::max)(heaviest, log_weights.maxCoeff()); });
    in_weighed_runs([&](const auto& log_weights, auto weights) {
      weights.array() *= (log_weights.array() - heaviest).unaryExpr(FlushedExp<S>{});
    });
    tile_scale += heaviest;
  }
  tile.out.raise(t, tile_scale);
  row *= flushed_exp(tile_scale - tile.out.log_scale[t]);
  tile.out.normaliser[t] += row.sum();
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
