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
void TiledAttention<S>::attend(const Queries<S>& queries, const RowSums<S>& out) const {
  attend(queries, out, [](const Tile&, Index) {});
}

/// Calls take(tile, key) with each tile of keys when its weights are there, key being the first of them.
template <class S>
template <class Take>
void TiledAttention<S>::attend(const Queries<S>& queries, const RowSums<S>& out, const Take& take) const {
  Workspace::Frame frame;
  const Index n_q = queries.rows(), all = keys_.k.rows();
  auto* seen = frame.numbers<KeyRange>(n_q);
  KeyRange any{all, 0};
  for (Index t = 0; t < n_q; ++t) {
    seen[t] = t % queries.heads == 0 ? sight(queries.first + t / queries.heads) : seen[t - 1];
    if (seen[t].begin >= seen[t].end) continue;
    any = {(std::min)(any.begin, seen[t].begin), (std::max)(any.end, seen[t].end)};
  }
  // What a window shows to a tile of queries comes in one piece: its edges cut it enough.
  const Index n = any.end - any.begin <= 2 * tile_ ? std::max<Index>(any.end - any.begin, 0) : tile_;
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
                  frame.numbers<KeyRange>(n_q),
                  elementwise_ ? frame.rows<std::uint8_t>(n_q, n) : Rows<std::uint8_t>()};
  std::fill_n(tile.met, n_q, false);
  out.set_nothing();
  for (Index key = existing(any.begin, any.end), n_k; key < any.end; key = existing(key + n_k, any.end)) {
    n_k = (std::min)(n, any.end - key);
    if (!look(tile, n_k, key)) continue;
    Rows<const S> tokens = load(keys_.k, key, keys_.factor, tile.tokens.top(n_k));
    Rows<const S> values = load(keys_.v, key, S(1), tile.values.top(n_k));
    take_tile(tile, tokens, values, key);
    take(tile, key);
  }
  for (Index t = 0; kernel_.never_zero && t < n_q; ++t) {
    if (out.normaliser[t] == 0 && tile.met[t]) out.set_out_of_range(t);
  }
}

/// Rows from `first` on, where they lie if they can stay as they are. In place of one that does not exist, which weighs
/// nothing, comes the first, which does: nothing is to depend on what it holds.
template <class S>
Rows<const S> TiledAttention<S>::load(const InputView<S>& x, Index first, S factor, Rows<S> room) const {
  const Index last = first + room.rows;
  Index gap = keys_.padded ? first : last;
  while (gap < last && exists(gap)) ++gap;
  if (gap == last && factor == S(1)) return x.rows_at(first, room);
  x.load(first, factor, room);
  for (; gap < last; ++gap) {
    if (!exists(gap)) std::copy_n(room.row(0), room.cols, room.row(gap - first));
  }
  return room;
}

/// The run of keys that a query may see.
template <class S>
KeyRange TiledAttention<S>::sight(Index query) const {
  const Index n_k = keys_.k.rows();
  const KeyRange seen = mask_.keys(query, n_k);
  if (!kernel_.rules) return seen;
  const KeyRange of_rules = kernel_.rules->keys(query, n_k, keys_.places);
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

/// Which of the keys [first_key, first_key + n_k) each row sees; whether any sees any.
template <class S>
bool TiledAttention<S>::look(const Tile& tile, Index n_k, Index first_key) const {
  bool any = false;
  for (Index t = 0; t < tile.queries.rows; ++t) {
    const Index end = std::clamp<Index>(tile.seen[t].end - first_key, 0, n_k);
    KeyRange keys{std::clamp<Index>(tile.seen[t].begin - first_key, 0, end), end};
    const auto sees = [&](Index j) { return exists(first_key + j) && !(elementwise_ && tile.hidden(t, j)); };
    if (elementwise_ && t % tile.heads != 0) {
      std::copy_n(tile.hidden.row(t - 1), n_k, tile.hidden.row(t));
    } else if (elementwise_) {
      std::fill_n(tile.hidden.row(t), n_k, std::uint8_t{0});
      kernel_.rules->hide(tile.hidden.row(t) + keys.begin, keys.end - keys.begin, tile.query(t),
                          first_key + keys.begin, keys_.places);
    }
    while (keys.begin < keys.end && !sees(keys.begin)) ++keys.begin;
    while (keys.begin < keys.end && !sees(keys.end - 1)) --keys.end;
    tile.here[t] = keys;
    tile.met[t] |= keys.begin < keys.end;
    any |= keys.begin < keys.end;
  }
  return any;
}

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
  raise(tile.out, t, tile_scale);
  row *= flushed_exp(tile_scale - tile.out.log_scale[t]);
  tile.out.normaliser[t] += row.sum();
}

template <class S>
void TiledAttention<S>::weigh(const InputView<S>& q, S query_factor, std::optional<S> sink,
                              Rows<S> out) const {
  const FloatEnvironment environment;
  out.eigen().setZero();
  TiledAttention in_one = *this;
  in_one.tile_ = (std::max)(keys_.k.rows(), Index{1});
  for (Index first = 0; first < q.rows(); first += kTileStep) {
    Workspace::Frame frame;
    const Rows<S> queries = frame.rows<S>((std::min)(kTileStep, q.rows() - first), q.cols());
    q.load(first, query_factor, queries);
    const auto sums = RowSums<S>::of(frame, queries.rows, keys_.v.cols());
    in_one.attend({queries, first}, sums, [&](const Tile& tile, Index key) {
      for (Index t = 0; t < queries.rows; ++t) {
        tile.in_runs(t, [&](Index begin, Index n) {
          std::copy_n(tile.weights.row(t) + begin, n, out.row(first + t) + key + begin);
        });
      }
    });
    for (Index t = 0; t < queries.rows; ++t) {
      if (sums.is_nothing(t)) continue;
      const S scale = sums.log_scale[t];
      if (sink) join_sink(sums.middle(t, 1), *sink);
      Eigen::Map<RowVector<S>>(out.row(first + t), out.cols) *=
          flushed_exp(scale - sums.log_scale[t]) / sums.normaliser[t];
    }
  }
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
