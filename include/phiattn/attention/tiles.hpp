#pragma once

// Exact attention in tiles. Next: attention/key_value_cache.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/similarity.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phiattn::detail {

/// Which keys row i sees: the first of(i) of them.
struct Visible {
  Index n_k;
  bool causal;
  Index offset;

  Index of(Index i) const { return causal ? std::clamp<Index>(offset + 1 + i, 0, n_k) : n_k; }
};

/// Keys, values and their weights as they lie in memory, and what makes keys the vectors that the kernel sees. A key
/// of log-weight -inf is 0, as is its value.
template <class S>
struct KeyRows {
  const Input<S>& k;
  const Input<S>& v;
  const Input<S>* log_weights;
  S factor;
};

/// Attention of a kernel by online softmax (Milakov & Gimelshein 2018; Rabe & Staats 2021): for each tile of queries,
/// one pass over tiles of keys that keeps, for each row, the largest log-similarity so far and the sums relative to
/// it. Cost: 2 n_q n_k (d + dv) flops and n_q n_k exponentials, half when causal; memory O(tile (tile + d + dv)).
/// The object is one call; its scratch is cut from a block that the caller keeps.
template <Kernel K>
class TiledAttention {
  using S = typename K::Scalar;

 public:
  TiledAttention(const K& kernel, const KeyRows<S>& keys, const Visible& visible, Index tile)
      : kernel_(kernel), keys_(keys), visible_(visible), tile_(tile) {}

  AttentionStatus attend(const Input<S>& q, S query_factor, RowResults<S> results,
                         ScratchBlock<S>& block) const {
    for (Index first = 0; first < q.rows(); first += tile_) {
      Tile tile = cut(block, std::min(tile_, q.rows() - first), q.cols());
      q.load(first, query_factor, tile.queries);
      tile.sums.setZero();
      tile.normaliser.setZero();
      tile.log_scale.setConstant(kNothing<S>);
      const Index end = visible_.of(first + tile.queries.rows() - 1);
      for (Index key = 0; key < end; key += tile_) {
        const Index n_k = std::min(tile_, end - key);
        if (keys_.log_weights) {
          keys_.log_weights->as_column().load(key, S(1), tile.log_weights.topRows(n_k));
        }
        keys_.k.with_rows(key, keys_.factor, tile.tokens.topRows(n_k), [&](const ConstMatrixRef<S>& tokens) {
          keys_.v.with_rows(key, S(1), tile.values.topRows(n_k), [&](const ConstMatrixRef<S>& values) {
            take_tile(tile, tokens, values, first, key);
          });
        });
      }
      results.take(first, tile.sums, tile.normaliser, tile.log_scale, LogKernel<K>);
    }
    return results.status();
  }

 private:
  /// A tile of queries and what becomes of it, and room for a tile of keys.
  struct Tile {
    Eigen::Map<Matrix<S>> queries, tokens, values, log_weights, weights, sums;
    Eigen::Map<Vector<S>> normaliser, log_scale, tile_log_scale;
  };

  Tile cut(ScratchBlock<S>& block, Index n_q, Index d) const {
    const Index n_k = std::min(tile_, keys_.k.rows());
    const Index dv = keys_.v.cols();
    return block.cut([&](ScratchBlock<S>& from) {
      return Tile{from.matrix(n_q, d),
                  from.matrix(n_k, d),
                  from.matrix(n_k, dv),
                  from.matrix(n_k, 1),
                  from.matrix(n_q, padded<S>(n_k)),
                  from.matrix(n_q, dv),
                  from.vector(n_q),
                  from.vector(n_q),
                  from.vector(n_q)};
    });
  }

  void take_tile(Tile& tile, const ConstMatrixRef<S>& tokens, const ConstMatrixRef<S>& values,
                 Index first_query, Index first_key) const {
    const Index n_q = tile.queries.rows();
    const Index n_k = tokens.rows();
    const auto seen = [&](Index t) {
      return std::clamp<Index>(visible_.of(first_query + t) - first_key, 0, n_k);
    };
    const bool whole = seen(0) == n_k;
    // Rows of whole packets.
    const auto weights = tile.weights.leftCols(padded<S>(n_k));
    // A key that a row does not see must not sway a signed kernel's log-scale; for the others it is only waste.
    const Index together = whole ? n_q : LogKernel<K> ? kStep : 1;
    for (Index t = 0; t < n_q; t += together) {
      const Index rows = std::min(together, n_q - t);
      const Index cols = seen(t + rows - 1);
      if (cols == 0) continue;
      const auto q = tile.queries.middleRows(t, rows);
      const auto k = tokens.topRows(cols);
      const auto similarities = tile.weights.block(t, 0, rows, cols);
      if constexpr (LogKernel<K>) {
        kernel_.log_similarity(q, k, similarities);
      } else {
        kernel_.signed_similarity(q, k, similarities, tile.tile_log_scale.segment(t, rows));
      }
    }
    if constexpr (LogKernel<K>) {
      if (!whole || weights.cols() > n_k) {
        for (Index t = 0; t < n_q; ++t) {
          tile.weights.row(t)
              .segment(seen(t), weights.cols() - seen(t))
              .setConstant(-std::numeric_limits<S>::infinity());
        }
      }
      in_steps<4>(n_q, 1, [&]<int N>(Index t) { take_rows<N>(tile, t, n_k); });
    } else {
      for (Index t = 0; t < n_q; ++t) take_row(tile, t, n_k, seen(t));
    }
    if (whole || all_finite<S>(values)) {
      // Row t sees the keys up to t + diagonal.
      const Index diagonal = whole ? kNoDiagonal : visible_.of(first_query) - first_key - 1;
      multiply_add<S>(weights.leftCols(n_k), values, tile.sums, diagonal);
    } else {
      // 0 times a non-finite value that the row does not see is NaN.
      for (Index t = 0; t < n_q; ++t) {
        multiply_add<S>(weights.row(t).head(seen(t)), values.topRows(seen(t)), tile.sums.middleRows(t, 1));
      }
    }
  }

  /// Turns log-similarities of N rows with n_k keys into weights relative to their log-scales.
  template <int N>
  void take_rows(Tile& tile, Index t, Index n_k) const {
    using namespace Eigen::internal;
    using P = Packet<S>;
    if (keys_.log_weights) {
      for (Index r = t; r < t + N; ++r) {
        tile.weights.row(r).head(n_k) += tile.log_weights.topRows(n_k).transpose();
      }
    }
    // Stores of packets may alias whatever lies in memory: strides are better kept in registers.
    const Index cols = padded<S>(n_k), stride = tile.weights.outerStride();
    S* const rows = tile.weights.data() + t * stride;
    P top[N], sum[N];
    unroll<N>([&](auto r) PHIATTN_INLINE {
      top[r] = pset1<P>(kNothing<S>);
      sum[r] = pset1<P>(S(0));
    });
    for (Index j = 0; j < cols; j += kPacket<S>) {
      // The first argument of pmax prevails where one is NaN.
      unroll<N>([&](auto r) PHIATTN_INLINE { top[r] = pmax(top[r], ploadu<P>(rows + r * stride + j)); });
    }
    unroll<N>([&](auto r) PHIATTN_INLINE {
      raise(tile, t + r, predux_max(top[r]));
      top[r] = pset1<P>(tile.log_scale(t + r));
    });
    for (Index j = 0; j < cols; j += kPacket<S>) {
      unroll<N>([&](auto r) PHIATTN_INLINE {
        S* x = rows + r * stride + j;
        const P weight = packet_exp_to_one<S>(P(psub(ploadu<P>(x), top[r])));
        sum[r] = padd(sum[r], weight);
        pstoreu(x, weight);
      });
    }
    unroll<N>([&](auto r) PHIATTN_INLINE { tile.normaliser(t + r) += predux(sum[r]); });
  }

  /// Turns similarities of row t with the first `seen` keys into weights relative to its log-scale.
  void take_row(Tile& tile, Index t, Index n_k, Index seen) const {
    tile.weights.row(t).segment(seen, n_k - seen).setZero();
    if (seen == 0) return;
    auto row = tile.weights.row(t).head(seen);
    S tile_scale = tile.tile_log_scale(t);
    if (keys_.log_weights) {
      const auto log_weights = tile.log_weights.topRows(seen);
      const S heaviest = std::max(log_weights.maxCoeff(), kNothing<S>);
      if (heaviest == kNothing<S>) {
        row.setZero();
        return;
      }
      row.array() *= (log_weights.transpose().array() - heaviest).unaryExpr(FlushedExp<S>{});
      tile_scale += heaviest;
    }
    raise(tile, t, tile_scale);
    row *= flushed_exp(tile_scale - tile.log_scale(t));
    tile.normaliser(t) += row.sum();
  }

  static void raise(Tile& tile, Index t, S log_scale) {
    if (log_scale <= tile.log_scale(t)) return;  // NaN goes on
    const S shrink = flushed_exp(tile.log_scale(t) - log_scale);
    tile.sums.row(t) *= shrink;
    tile.normaliser(t) *= shrink;
    tile.log_scale(t) = log_scale;
  }

  /// Rows of a tile on the diagonal that are taken together, over the keys that the last of them sees.
  static constexpr Index kStep = 32;

  const K& kernel_;
  KeyRows<S> keys_;
  Visible visible_;
  Index tile_;
};

}  // namespace phiattn::detail
