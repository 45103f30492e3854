#pragma once

// How a window drives the memory behind it.

#include <phiattn/attention/memory.hpp>
#include <phiattn/core/workspace.hpp>

#include <algorithm>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Rows [first, first + out.rows) of x times factor, or, if reversed, those of x upside down.
template <class S>
void load_rows_of(const InputView<S>& x, bool reversed, Index first, S factor, Rows<S> out) {
  x.load(reversed ? x.rows() - first - out.rows : first, factor, out);
  if (reversed) out.eigen().colwise().reverseInPlace();
}

/// Beside which of n_k keys, all of which exist, a query stands; the same for sequences upside down.
struct Beside {
  const Padding& padding;
  Index first, n_q, n_k;
  bool reversed = false;

  Index operator()(Index i) const {
    if (!reversed) return padding.of_query(first + i);
    return n_k - 1 - padding.of_query(first + n_q - 1 - i);
  }
  Beside upside_down() const { return {padding, first, n_q, n_k, true}; }
};

/// Causal attention of a far memory over whole sequences, from either end: a query sees the keys that are more than `half`
/// before the one beside which it stands. Calls consume(first, queries, results) for each block of queries, in order.
template <BlockModel Far, class S, class Consume>
void sweep_far(Far& memory, const InputView<S>& q, const CallKeys<S>& all, S root_scale, const Beside& beside,
               Index half, Index block, AttentionStatus& status, const Consume& consume) {
  const bool reversed = beside.reversed;
  const InputView<S>&k = all.k, &v = all.v;
  const InputView<S> log_weights = all.log_weights ? all.log_weights.as_column() : all.log_weights;
  Index taken = 0;
  const auto take_tokens = [&](Workspace::Frame& frame, Index n) -> Tokens<S> {
    const Rows<S> keys = frame.rows<S>(n, k.cols()), values = frame.rows<S>(n, v.cols());
    load_rows_of<S>(k, reversed, taken, root_scale, keys);
    load_rows_of<S>(v, reversed, taken, S(1), values);
    const Rows<S> weights = frame.rows<S>(log_weights ? n : 0, 1);
    if (log_weights) load_rows_of<S>(log_weights, reversed, taken, S(1), weights);
    const Index first = taken;
    taken += n;
    return {keys, values, log_weights ? weights.data : nullptr, first};
  };
  for (Index first = 0; first < q.rows(); first += block) {
    Workspace::Frame frame;
    const Index n = (std::min)(block, q.rows() - first);
    const Rows<S> queries = frame.rows<S>(n, q.cols());
    load_rows_of<S>(q, reversed, first, root_scale, queries);
    const auto results = RowSums<S>::of(frame, n, v.cols());
    const auto seen = [&](Index t) { return std::clamp<Index>(beside(first + t) - half, 0, k.rows()); };
    for (Index t = 0, rows; t < n; t += rows) {
      while (seen(t) > taken + 1) {
        Workspace::Frame own;
        memory.append_block(take_tokens(own, (std::min)(block, seen(t) - 1 - taken)));
      }
      const Index step = seen(t) - taken;  // 0: no key comes or leaves with these rows; 1: one with each
      rows = 1;
      const Index position = beside(first + t);
      while (t + rows < n && seen(t + rows) == seen(t) + step * rows &&
             beside(first + t + rows) == position + rows) {
        ++rows;
      }
      const Queries<S> some{queries.middle(t, rows), position};
      const auto out = results.middle(t, rows);
      Workspace::Frame own;
      status.clamped_rows +=
          (step == 0 ? memory.read_block(some, out) : memory.advance_block(some, take_tokens(own, rows), out))
              .clamped_rows;
    }
    consume(first, queries, results);
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
