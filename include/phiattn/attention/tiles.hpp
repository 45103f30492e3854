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

/// Keys, values and their weights as they lie in memory, and what makes them the vectors that the kernel sees.
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
template <Kernel K>
class TiledAttention {
  using S = typename K::Scalar;

 public:
  TiledAttention(const K& kernel, Index tile) : kernel_(kernel), tile_(tile) {}

  AttentionStatus attend(const Input<S>& q, S query_factor, const KeyRows<S>& keys, const Visible& visible,
                         RowResults<S> results) {
    for (Index first = 0; first < q.rows(); first += tile_) {
      const Index n = std::min(tile_, q.rows() - first);
      load_queries(q, query_factor, first, n, keys.v.cols());
      const Index end = visible.of(first + n - 1);
      for (Index key = 0; key < end; key += tile_) {
        load_keys(keys, key, std::min(tile_, end - key));
        take_tile(first, key, visible);
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

  void load_keys(const KeyRows<S>& keys, Index first, Index n) {
    tokens_.resize(n, keys.k.cols());
    values_.resize(n, keys.v.cols());
    keys.k.load(first, keys.factor, tokens_);
    keys.v.load(first, S(1), values_);
    log_weights_.resize(keys.log_weights ? n : 0, 1);
    if (keys.log_weights) load_log_weights<S>(*keys.log_weights, first, log_weights_, tokens_, values_);
  }

  /// Weights of the tile, in rows of whole packets.
  auto weights(Index first, Index n) { return weights_.block(first, 0, n, tokens_.rows()); }

  void take_tile(Index first_query, Index first_key, const Visible& visible) {
    const Index n_q = queries_.rows();
    const Index n_k = tokens_.rows();
    const auto seen = [&](Index t) {
      return std::clamp<Index>(visible.of(first_query + t) - first_key, 0, n_k);
    };
    const bool whole = seen(0) == n_k;
    if (weights_.rows() < n_q || weights_.cols() < padded<S>(n_k)) weights_.resize(n_q, padded<S>(n_k));
    if constexpr (!LogKernel<K>) tile_log_scale_.resize(n_q);
    // A key that a row does not see must not sway a signed kernel's log-scale; for the others it is only waste.
    const Index together = whole ? n_q : LogKernel<K> ? kStep : 1;
    for (Index t = 0; t < n_q; t += together) {
      const Index rows = std::min(together, n_q - t);
      const Index cols = seen(t + rows - 1);
      if (cols == 0) continue;
      const auto q = queries_.middleRows(t, rows);
      const auto k = tokens_.topRows(cols);
      const auto tile = weights_.block(t, 0, rows, cols);
      if constexpr (LogKernel<K>) {
        kernel_.log_similarity(q, k, tile);
      } else {
        kernel_.signed_similarity(q, k, tile, tile_log_scale_.segment(t, rows));
      }
    }
    for (Index t = 0; t < n_q; ++t) take_row(t, seen(t));
    if (whole || largest(values_.cwiseAbs()) < std::numeric_limits<S>::infinity()) {
      // Row t sees the keys up to t + diagonal.
      const Index diagonal = whole ? kNoDiagonal : visible.of(first_query) - first_key - 1;
      multiply_add<S>(weights(0, n_q), values_, sums_, diagonal);
    } else {
      // 0 times a non-finite value that the row does not see is NaN.
      for (Index t = 0; t < n_q; ++t) {
        multiply_add<S>(weights_.row(t).head(seen(t)), values_.topRows(seen(t)), sums_.middleRows(t, 1));
      }
    }
  }

  /// Turns similarities of row t with the first `seen` keys of the tile into weights relative to its log-scale.
  void take_row(Index t, Index seen) {
    weights(t, 1).rightCols(tokens_.rows() - seen).setZero();
    if (seen == 0) return;
    auto row = weights_.row(t).head(seen);
    if constexpr (LogKernel<K>) {
      if (log_weights_.size() > 0) row += log_weights_.topRows(seen).transpose();
      const Index width = padded<S>(seen);
      weights_.row(t).segment(seen, width - seen).setConstant(-std::numeric_limits<S>::infinity());
      S* x = &weights_.coeffRef(t, 0);
      raise(t, largest_of(x, width));
      normaliser_(t) += exp_and_sum(x, width, log_scale_(t));
    } else {
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

  const K& kernel_;
  Index tile_;
  Matrix<S> queries_, tokens_, values_, log_weights_, weights_, sums_;
  Vector<S> tile_log_scale_, normaliser_, log_scale_;
};

}  // namespace phiattn::detail
