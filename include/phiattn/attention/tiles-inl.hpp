#pragma once

// Included by attention/tiles.hpp where that is not compiled elsewhere.

#include <phiattn/attention/tiles.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/float_environment.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// Rows of a tile that some keys are hidden from are taken so many together, over the keys that any of them sees.
inline constexpr Index kTileStep = 32;

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
  std::uint8_t* hidden;  // (rows, keys), where masks go key by key

  Index query(Index t) const { return first + t / heads; }
  /// Of the n_k keys from first_key on.
  KeyRange keys(Index t, Index first_key, Index n_k) const {
    const Index end = std::clamp<Index>(seen[t].end - first_key, 0, n_k);
    return {std::clamp<Index>(seen[t].begin - first_key, 0, end), end};
  }
};

template <class S>
void TiledAttention<S>::attend(const Queries<S>& queries, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const Index n_q = queries.rows(), all = keys_.k.rows(), n = (std::min)(tile_, all);
  auto* seen = frame.numbers<KeyRange>(n_q);
  KeyRange any{all, 0};
  for (Index t = 0; t < n_q; ++t) {
    seen[t] = t % queries.heads == 0 ? sight(queries.first + t / queries.heads) : seen[t - 1];
    if (seen[t].begin >= seen[t].end) continue;
    any = {(std::min)(any.begin, seen[t].begin), (std::max)(any.end, seen[t].end)};
  }
  const Tile tile{queries.q,
                  queries.first,
                  queries.heads,
                  seen,
                  frame.numbers<bool>(n_q),
                  out,
                  frame.rows<S>(n, keys_.k.cols()),
                  frame.rows<S>(n, keys_.v.cols()),
                  frame.rows<S>(n_q, padded<S>(n)),
                  frame.numbers<S>(n_q),
                  frame.numbers<std::uint8_t>(elementwise_ ? n_q * n : 0)};
  std::fill_n(tile.met, n_q, false);
  out.set_nothing();
  for (Index key = existing(any.begin, any.end), n_k; key < any.end; key = existing(key + n_k, any.end)) {
    n_k = (std::min)(tile_, any.end - key);
    for (Index j = 1; keys_.padded && j < n_k; ++j) {
      if (!exists(key + j)) n_k = j;
    }
    const Rows<S> room = tile.tokens.top(n_k);
    if (keys_.factor != S(1)) keys_.k.load(key, keys_.factor, room);
    const Rows<const S> tokens = keys_.factor != S(1) ? Rows<const S>(room) : keys_.k.rows_at(key, room);
    take_tile(tile, tokens, keys_.v.rows_at(key, tile.values.top(n_k)), key);
  }
  for (Index t = 0; kernel_.never_zero && t < n_q; ++t) {
    if (out.normaliser[t] == 0 && tile.met[t]) out.set_out_of_range(t);
  }
}

/// The run of keys that a query may see.
template <class S>
KeyRange TiledAttention<S>::sight(Index query) const {
  const Index n_k = keys_.k.rows();
  const KeyRange seen = mask_.keys(query, n_k);
  if (!kernel_.rules || keys_.places.irregular()) return seen;
  const KeyRange of_rules = kernel_.rules->keys(keys_.places.query(query), n_k);
  return {(std::max)(seen.begin, of_rules.begin), (std::min)(seen.end, of_rules.end)};
}

template <class S>
bool TiledAttention<S>::exists(Index key) const {
  return !keys_.padded || keys_.log_weights[key] != -std::numeric_limits<S>::infinity();
}

/// The first key of [first, end) that exists.
template <class S>
Index TiledAttention<S>::existing(Index first, Index end) const {
  while (first < end && !exists(first)) ++first;
  return first;
}

template <class S>
AttentionStatus TiledAttention<S>::attend(const InputGroup<S>& q, S query_factor,
                                          RowResults<S> results) const {
  const FloatEnvironment environment;
  const Index heads = q.heads();
  const Index step = std::max<Index>(1, tile_ / heads);
  for (Index first = 0; first < q.rows(); first += step) {
    Workspace::Frame frame;
    const Rows<S> queries = frame.rows<S>(heads * (std::min)(step, q.rows() - first), q.cols());
    q.load(first, query_factor, queries);
    const auto out = RowSums<S>::of(frame, queries.rows, keys_.v.cols());
    attend({queries, first, heads}, out);
    results.take(first, out);
  }
  return results.finish();
}

template <class S>
void TiledAttention<S>::take_tile(const Tile& tile, Rows<const S> tokens, Rows<const S> values,
                                  Index first_key) const {
  const Index n_q = tile.queries.rows, n_k = tokens.rows;
  bool whole = true;
  Index diagonal = -n_q;  // row t sees the keys up to t + diagonal
  for (Index t = 0; t < n_q; ++t) {
    const KeyRange keys = tile.keys(t, first_key, n_k);
    whole = whole && keys == KeyRange{0, n_k};
    diagonal = (std::max)(diagonal, keys.end - 1 - t);
    tile.met[t] |= !elementwise_ && keys.begin < keys.end;
  }
  if (elementwise_) {
    if (!hide(tile, n_k, first_key)) return;
    whole = false;
  }
  fill_similarities(tile, tokens, first_key, whole);
  if (kernel_.rules) modify(tile, n_k, first_key);
  if (kernel_.positive) {
    take_positive(tile, n_k, first_key, whole);
  } else {
    for (Index t = 0; t < n_q; ++t) take_row(tile, t, n_k, first_key);
  }
  if (whole || all_finite<S>(values)) {
    multiply_add<S>(tile.weights.left(n_k), values, tile.out.sums, whole ? kNoDiagonal : diagonal);
    return;
  }
  // 0 times a non-finite value that the row does not see is NaN.
  for (Index t = 0; t < n_q; ++t) {
    const KeyRange keys = tile.keys(t, first_key, n_k);
    if (!elementwise_) {
      add_values(tile, t, values, keys);
      continue;
    }
    const std::uint8_t* const hidden = tile.hidden + t * tile.values.rows;
    for (Index begin = keys.begin, end; begin < keys.end; begin = end) {
      for (end = begin + 1; end < keys.end && hidden[end] == hidden[begin];) ++end;
      if (!hidden[begin]) add_values(tile, t, values, {begin, end});
    }
  }
}

/// The values of a run of keys that row t sees.
template <class S>
void TiledAttention<S>::add_values(const Tile& tile, Index t, Rows<const S> values, KeyRange keys) const {
  const Index n = keys.end - keys.begin;
  multiply_add<S>({tile.weights.row(t) + keys.begin, 1, n, n}, values.middle(keys.begin, n),
                  tile.out.sums.middle(t, 1));
}

/// Finds out which keys masks hide one by one; whether any row sees any.
template <class S>
bool TiledAttention<S>::hide(const Tile& tile, Index n_k, Index first_key) const {
  bool any = false;
  for (Index t = 0; t < tile.queries.rows; ++t) {
    const KeyRange keys = tile.keys(t, first_key, n_k);
    std::uint8_t* const hidden = tile.hidden + t * tile.values.rows;
    if (t % tile.heads != 0) {
      std::copy_n(hidden - tile.values.rows, n_k, hidden);
    } else {
      std::fill_n(hidden, n_k, std::uint8_t{0});
      kernel_.rules->hide(hidden + keys.begin, keys.end - keys.begin, tile.query(t), first_key + keys.begin,
                          keys_.places);
    }
    const bool sees = std::find(hidden + keys.begin, hidden + keys.end, 0) != hidden + keys.end;
    tile.met[t] |= sees;
    any |= sees;
  }
  return any;
}

/// Caps and biases the scores that a row sees.
template <class S>
void TiledAttention<S>::modify(const Tile& tile, Index n_k, Index first_key) const {
  for (Index t = 0; t < tile.queries.rows; ++t) {
    const KeyRange keys = tile.keys(t, first_key, n_k);
    if (keys.begin == keys.end) continue;
    kernel_.rules->apply(tile.weights.row(t) + keys.begin, keys.end - keys.begin, tile.query(t),
                         first_key + keys.begin, keys_.places);
  }
}

/// A key that a row does not see must not sway a signed kernel's log-scale; for the others it is only waste.
template <class S>
void TiledAttention<S>::fill_similarities(const Tile& tile, Rows<const S> tokens, Index first_key,
                                          bool whole) const {
  const Index n_q = tile.queries.rows, n_k = tokens.rows;
  const Index together = whole ? n_q : kernel_.positive ? kTileStep : 1;
  for (Index t = 0; t < n_q; t += together) {
    const Index rows = (std::min)(together, n_q - t);
    KeyRange any{n_k, 0};
    for (Index r = t; r < t + rows; ++r) {
      const KeyRange keys = tile.keys(r, first_key, n_k);
      if (keys.begin < keys.end) any = {(std::min)(any.begin, keys.begin), (std::max)(any.end, keys.end)};
    }
    const Index cols = any.end - any.begin;
    if (cols <= 0) continue;
    kernel_.fill(kernel_.kernel, tile.queries.middle(t, rows), tokens.middle(any.begin, cols),
                 {tile.weights.row(t) + any.begin, rows, cols, tile.weights.stride}, tile.tile_log_scale + t);
  }
}

template <class S>
void TiledAttention<S>::take_positive(const Tile& tile, Index n_k, Index first_key, bool whole) const {
  const Index n_q = tile.queries.rows, cols = padded<S>(n_k);  // rows of whole packets
  for (Index t = 0; keys_.log_weights && t < n_q; ++t) {
    Eigen::Map<RowVector<S>>(tile.weights.row(t), n_k) +=
        Eigen::Map<const RowVector<S>>(keys_.log_weights + first_key, n_k);
  }
  constexpr S kNone = -std::numeric_limits<S>::infinity();
  if (!whole || cols > n_k) {
    for (Index t = 0; t < n_q; ++t) {
      const KeyRange keys = tile.keys(t, first_key, n_k);
      S* row = tile.weights.row(t);
      std::fill(row, row + keys.begin, kNone);
      std::fill(row + keys.end, row + cols, kNone);
      for (Index j = keys.begin; elementwise_ && j < keys.end; ++j) {
        if (tile.hidden[t * tile.values.rows + j]) row[j] = kNone;
      }
    }
  }
  in_steps<4>(n_q, 1, [&]<int N>(Index t) { take_rows<N>(tile, t, n_k); });
}

/// Turns log-similarities of N rows with n_k keys into weights relative to their log-scales.
template <class S>
template <int N>
void TiledAttention<S>::take_rows(const Tile& tile, Index t, Index n_k) const {
  using P = Packet<S>;
  // Stores of packets may alias whatever lies in memory: strides are better kept in registers.
  const Index cols = padded<S>(n_k), stride = tile.weights.stride;
  S* const rows = tile.weights.row(t);
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
    raise(tile.out, t + r, predux_max(top[r]));
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
void TiledAttention<S>::take_row(const Tile& tile, Index t, Index n_k, Index first_key) const {
  const KeyRange keys = tile.keys(t, first_key, n_k);
  S* const all = tile.weights.row(t);
  std::fill(all, all + keys.begin, S(0));
  std::fill(all + keys.end, all + n_k, S(0));
  const Index n = keys.end - keys.begin;
  if (n == 0) return;
  Eigen::Map<RowVector<S>> row(all + keys.begin, n);
  S tile_scale = tile.tile_log_scale[t];
  if (keys_.log_weights) {
    const Eigen::Map<const RowVector<S>> log_weights(keys_.log_weights + first_key + keys.begin, n);
    const S heaviest = log_weights.maxCoeff();
    row.array() *= (log_weights.array() - heaviest).unaryExpr(FlushedExp<S>{});
    tile_scale += heaviest;
  }
  raise(tile.out, t, tile_scale);
  row *= flushed_exp(tile_scale - tile.out.log_scale[t]);
  tile.out.normaliser[t] += row.sum();
}

template <class S>
void TiledAttention<S>::raise(const RowSums<S>& out, Index t, S log_scale) {
  if (log_scale <= out.log_scale[t]) return;  // NaN goes on
  const S shrink = flushed_exp(out.log_scale[t] - log_scale);
  out.row(t) *= shrink;
  out.normaliser[t] *= shrink;
  out.log_scale[t] = log_scale;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
