#pragma once

// A block of tokens, by the closure that each belongs to.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/closure_tokens.hpp>

#include <algorithm>
#include <utility>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The tokens of a block, those of a closure side by side in the order they came, as deviations from the means that the
/// closure had before the block. A view.
template <class S>
struct ClosureBlock {
  Rows<S> keys, values;  // (m, d), (m, dv)
  S* weights;            // (m), relative to the log-scale of the closure
  S* log_counts;         // (m)
  Index* closures;       // (m), whose the token is that comes with a step,
  Index* slots;          // (m), its row here,
  Index* order;          // (m), and the token in each row
  Index* begin;          // (closures + 1), the rows of each closure

  Index size() const { return keys.rows; }
  Index count(Index g) const { return begin[g + 1] - begin[g]; }

  /// @param closures  whose each token is, below `count`; none: all are of the first
  static ClosureBlock of(Workspace::Frame& frame, const ClosureTokens<S>& tokens, const Index* closures,
                         Index count) {
    const Index m = tokens.size();
    ClosureBlock block{frame.rows<S>(m, tokens.k.cols),
                       frame.rows<S>(m, tokens.v.cols),
                       frame.numbers<S>(m),
                       frame.numbers<S>(m),
                       frame.numbers<Index>(m),
                       frame.numbers<Index>(m),
                       frame.numbers<Index>(m),
                       frame.numbers<Index>(count + 1)};
    for (Index j = 0; j < m; ++j) block.closures[j] = closures ? closures[j] : 0;
    std::fill_n(block.begin, count + 1, Index{0});
    for (Index j = 0; j < m; ++j) ++block.begin[block.closures[j]];
    for (Index g = 0, next = 0; g <= count; ++g) next += std::exchange(block.begin[g], next);
    // Each token takes the next row of its closure, which moves `begin` on by one closure.
    for (Index j = 0; j < m; ++j) {
      const Index slot = block.begin[block.closures[j]]++;
      block.slots[j] = slot;
      block.order[slot] = j;
      block.log_counts[slot] = tokens.log_counts[j];
    }
    std::copy_backward(block.begin, block.begin + count, block.begin + count + 1);
    block.begin[0] = 0;
    return block;
  }

  /// Numbers of type S that of() takes, at most.
  static Index room(Index m, Index d, Index dv, Index count) {
    constexpr Index kIndex = Index{sizeof(Index)} / Index{sizeof(S)};
    return m * (d + dv + 2) + kIndex * (3 * m + count + 1);
  }
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
