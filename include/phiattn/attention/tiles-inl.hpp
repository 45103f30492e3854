#pragma once

// Included by attention/tiles.hpp where that is not compiled elsewhere.

#include <phiattn/attention/tile_rows-inl.hpp>
#include <phiattn/attention/tiles.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/float_environment.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

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

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
