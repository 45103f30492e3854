#pragma once

// Gaussian closures under one normaliser.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/core/abi.hpp>
#include <phiattn/memories/closure_moments.hpp>

#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Closures of one set of options, each for some of the tokens.
template <class S>
class Closures {
 public:
  Closures(Index count, Index d, Index dv, const ClosureOptions& options)
      : closures_(static_cast<std::size_t>(count), ClosureMoments<S>(d, dv, options)) {}

  Index size() const { return static_cast<Index>(closures_.size()); }
  const ClosureOptions& options() const { return closures_.front().options; }

  /// @param of  the closure of each token; none: all are of the first
  void append(const ClosureTokens<S>& tokens, const Index* of = nullptr);

  /// Queries x (n, d) see all tokens so far.
  AttentionStatus read(Rows<const S> x, const RowSums<S>& out) const;

  /// Row t sees all tokens so far and the block's own up to t / heads. Taken as one block if that is safe, else as two
  /// halves in order. A non-finite token is unsafe: 0 * inf in the zeroed triangle is NaN.
  AttentionStatus advance(Rows<const S> x, Index heads, const ClosureTokens<S>& tokens, const Index* of,
                          const RowSums<S>& out);

  /// Adds the tokens of `other`, closure by closure.
  void merge(const Closures& other);

 private:
  /// Makes room for all that n queries and m tokens take at a time, so that nothing throws once anything has changed.
  void reserve(Workspace::Frame& frame, Index n, Index m) const;
  bool admits(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block) const;
  void take(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block);
  void absorb(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block);

  std::vector<ClosureMoments<S>> closures_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
