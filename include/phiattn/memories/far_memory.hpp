#pragma once

// How a window drives the memory behind it, whatever that is. Next: memories/forgetful_memory.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/memories/block_memory.hpp>

#include <algorithm>

namespace phiattn::detail {

template <class S>
void store_partial(const Partial<S>& partial, PartialRows<S> results) {
  results.out = partial.out;
  results.log_normaliser = partial.log_normaliser.cwiseMax(kNothing<S>);
  results.sign = partial.sign;
}

template <Memory Far, class S>
void append_far(Far& far, const TokenRows<S>& tokens) {
  if (tokens.size() == 0) return;
  if constexpr (DrivenInBlocks<Far>) {
    far.append_block(tokens);
  } else {
    far.append(tokens.k, tokens.v, tokens.log_weights);
  }
}

template <Memory Far, class S>
AttentionStatus read_far(const Far& far, const ConstMatrixRef<S>& q, Index first, PartialRows<S> results) {
  if constexpr (DrivenInBlocks<Far>) {
    return far.read_block(q, first, results);
  } else {
    store_partial(far.read_partial(q, first), results);
    return {};
  }
}

/// Row t sees the past and the tokens <= t. A memory that is not driven in blocks takes them one by one.
template <Memory Far, class S>
AttentionStatus advance_far(Far& far, const ConstMatrixRef<S>& q, const TokenRows<S>& tokens, Index first,
                            PartialRows<S> results) {
  if constexpr (DrivenInBlocks<Far>) {
    return far.advance_block(q, tokens, results);
  } else {
    for (Index t = 0; t < q.rows(); ++t) {
      append_far(far, tokens.slice(t, 1));
      read_far<Far, S>(far, q.middleRows(t, 1), first + t, results.slice(t, 1));
    }
    return {};
  }
}

/// Rows [first, first + out.rows()) of x, or, if reversed, those of x upside down.
template <class S>
void load_rows(const Input<S>& x, bool reversed, Index first, MatrixRef<S> out) {
  x.load(reversed ? x.rows() - first - out.rows() : first, S(1), out);
  if (reversed) out.colwise().reverseInPlace();
}

/// Causal attention of a far memory over whole sequences, from either end: query i sees the keys j <= i + offset.
/// Calls consume(first, n, results) for each block of queries, in order.
template <Memory Far, class S, class Consume>
AttentionStatus sweep_far(Far& far, const Input<S>& q, const Input<S>& k, const Input<S>& v, Index offset,
                          Index position, bool reversed, Index block, const Consume& consume) {
  BlockBuffers<S> buffers;
  Index taken = 0;
  const auto load_tokens = [&](Index n) -> TokenRows<S> {
    reserve(buffers.k, n, k.cols());
    reserve(buffers.v, n, v.cols());
    reserve(buffers.log_weights, n, 1);
    load_rows<S>(k, reversed, taken, buffers.k.topRows(n));
    load_rows<S>(v, reversed, taken, buffers.v.topRows(n));
    buffers.log_weights.setZero();
    taken += n;
    return {buffers.k.topRows(n), buffers.v.topRows(n), buffers.log_weights.head(n)};
  };
  AttentionStatus status;
  for (Index first = 0; first < q.rows(); first += block) {
    const Index n = std::min(block, q.rows() - first);
    reserve(buffers.q, n, q.cols());
    load_rows<S>(q, reversed, first, buffers.q.topRows(n));
    auto results = buffers.results(n, v.cols());
    const auto seen = [&](Index t) { return std::clamp<Index>(offset + first + t + 1, 0, k.rows()); };
    for (Index t = 0, rows; t < n; t += rows) {
      while (seen(t) > taken + 1) append_far(far, load_tokens(std::min(block, seen(t) - 1 - taken)));
      const Index step = seen(t) - taken;  // 0: no key comes or leaves with these rows; 1: one with each
      rows = 1;
      while (t + rows < n && seen(t + rows) == seen(t) + step * rows) ++rows;
      const auto queries = buffers.q.middleRows(t, rows);
      status.add(step == 0 ? read_far<Far, S>(far, queries, position + first + t, results.slice(t, rows))
                           : advance_far<Far, S>(far, queries, load_tokens(rows), position + first + t,
                                                 results.slice(t, rows)),
                 first + t);
    }
    consume(first, n, results);
  }
  return status;
}

}  // namespace phiattn::detail
