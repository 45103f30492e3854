#pragma once

// Exact attention in tiles. Next: attention/key_value_cache.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/product.hpp>
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
/// The object is the scratch of the calls; it grows to the largest tile seen.
template <Kernel K>
class TiledAttention {
  using S = typename K::Scalar;

 public:
  AttentionStatus attend(const K& kernel, Index tile, const Input<S>& q, S query_factor,
                         const KeyRows<S>& keys, const Visible& visible, RowResults<S> results) {
    for (Index first = 0; first < q.rows(); first += tile) {
      const Index n = std::min(tile, q.rows() - first);
      load_queries(q, query_factor, first, n, keys.v.cols());
      const Index end = visible.of(first + n - 1);
      for (Index key = 0; key < end; key += tile) {
        const Index n_k = std::min(tile, end - key);
        log_weights_.resize(keys.log_weights ? n_k : 0, 1);
        if (keys.log_weights) keys.log_weights->as_column().load(key, S(1), log_weights_);
        keys.k.with_rows(key, n_k, keys.factor, tokens_, [&](const ConstMatrixRef<S>& tokens) {
          keys.v.with_rows(key, n_k, S(1), values_, [&](const ConstMatrixRef<S>& values) {
            take_tile(kernel, tokens, values, first, key, visible);
          });
        });
      }
      results.take(first, sums_, normaliser_, log_scale_, LogKernel<K>);
    }
    return results.status();
  }

 private:
  void load_queries(const Input<S>& q, S factor, Index first, Index n, Index dv) {
    queries_.resize(n, q.cols());
    q.load(first, factor, queries_);
    sums_.setZero(n, dv);
    normaliser_.setZero(n);
    log_scale_.setConstant(n, kNothing<S>);
  }

  void take_tile(const K& kernel, const ConstMatrixRef<S>& tokens, const ConstMatrixRef<S>& values,
                 Index first_query, Index first_key, const Visible& visible) {
    const Index n_q = queries_.rows();
    const Index n_k = tokens.rows();
    const auto seen = [&](Index t) {
      return std::clamp<Index>(visible.of(first_query + t) - first_key, 0, n_k);
    };
    const bool whole = seen(0) == n_k;
    weights_.resize(n_q, padded<S>(n_k));
    if constexpr (!LogKernel<K>) tile_log_scale_.resize(n_q);
    // A key that a row does not see must not sway a signed kernel's log-scale; for the others it is only waste.
    const Index together = whole ? n_q : LogKernel<K> ? kStep : 1;
    for (Index t = 0; t < n_q; t += together) {
      const Index rows = std::min(together, n_q - t);
      const Index cols = seen(t + rows - 1);
      if (cols == 0) continue;
      const auto q = queries_.middleRows(t, rows);
      const auto k = tokens.topRows(cols);
      const auto tile = weights_.block(t, 0, rows, cols);
      if constexpr (LogKernel<K>) {
        kernel.log_similarity(q, k, tile);
      } else {
        kernel.signed_similarity(q, k, tile, tile_log_scale_.segment(t, rows));
      }
    }
    if constexpr (LogKernel<K>) {
      if (!whole || weights_.cols() > n_k) {
        for (Index t = 0; t < n_q; ++t) {
          weights_.row(t).tail(weights_.cols() - seen(t)).setConstant(-std::numeric_limits<S>::infinity());
        }
      }
      in_steps<4>(n_q, 1, [&]<int N>(Index t) { take_rows<N>(t, n_k); });
    } else {
      for (Index t = 0; t < n_q; ++t) take_row(t, seen(t));
    }
    const auto weights = weights_.leftCols(n_k);
    if (whole || all_finite<S>(values)) {
      // Row t sees the keys up to t + diagonal.
      const Index diagonal = whole ? kNoDiagonal : visible.of(first_query) - first_key - 1;
      multiply_add<S>(weights, values, sums_, diagonal);
    } else {
      // 0 times a non-finite value that the row does not see is NaN.
      for (Index t = 0; t < n_q; ++t) {
        multiply_add<S>(weights.row(t).head(seen(t)), values.topRows(seen(t)), sums_.middleRows(t, 1));
      }
    }
  }

  /// Turns log-similarities of N rows with n_k keys into weights relative to their log-scales.
  template <int N>
  void take_rows(Index t, Index n_k) {
    using namespace Eigen::internal;
    using P = Packet<S>;
    if (log_weights_.size() > 0) {
      for (Index r = t; r < t + N; ++r) weights_.row(r).head(n_k) += log_weights_.transpose();
    }
    // Stores of packets may alias whatever lies in memory: strides are better kept in registers.
    const Index cols = weights_.cols(), stride = weights_.outerStride();
    S* const rows = weights_.data() + t * stride;
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
      raise(t + r, predux_max(top[r]));
      top[r] = pset1<P>(log_scale_(t + r));
    });
    for (Index j = 0; j < cols; j += kPacket<S>) {
      unroll<N>([&](auto r) PHIATTN_INLINE {
        S* x = rows + r * stride + j;
        const P weight = packet_exp_to_one<S>(P(psub(ploadu<P>(x), top[r])));
        sum[r] = padd(sum[r], weight);
        pstoreu(x, weight);
      });
    }
    unroll<N>([&](auto r) PHIATTN_INLINE { normaliser_(t + r) += predux(sum[r]); });
  }

  /// Turns similarities of row t with the first `seen` keys into weights relative to its log-scale.
  void take_row(Index t, Index seen) {
    weights_.row(t).tail(weights_.cols() - seen).setZero();
    if (seen == 0) return;
    auto row = weights_.row(t).head(seen);
    S tile_scale = tile_log_scale_(t);
    if (log_weights_.size() > 0) {
      const S heaviest = std::max(log_weights_.topRows(seen).maxCoeff(), kNothing<S>);
      if (heaviest == kNothing<S>) {
        row.setZero();
        return;
      }
      row.array() *= (log_weights_.topRows(seen).transpose().array() - heaviest).unaryExpr(FlushedExp<S>{});
      tile_scale += heaviest;
    }
    raise(t, tile_scale);
    row *= flushed_exp(tile_scale - log_scale_(t));
    normaliser_(t) += row.sum();
  }

  void raise(Index t, S log_scale) {
    if (log_scale <= log_scale_(t)) return;  // NaN goes on
    const S shrink = flushed_exp(log_scale_(t) - log_scale);
    sums_.row(t) *= shrink;
    normaliser_(t) *= shrink;
    log_scale_(t) = log_scale;
  }

  /// Rows of a tile on the diagonal that are taken together, over the keys that the last of them sees.
  static constexpr Index kStep = 32;

  Matrix<S> queries_, tokens_, values_, log_weights_, weights_, sums_;
  Vector<S> tile_log_scale_, normaliser_, log_scale_;
};

}  // namespace phiattn::detail
