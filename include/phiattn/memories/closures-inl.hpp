#pragma once

// Included where closures are compiled.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/closure_moments-inl.hpp>
#include <phiattn/memories/closure_read-inl.hpp>
#include <phiattn/memories/closures.hpp>

#include <cstddef>
#include <limits>

namespace phiattn::inline PHIATTN_ABI::detail {

template <class S>
void Closures<S>::reserve(Workspace::Frame& frame, Index n, Index m) const {
  const Index d = closures_.front().mean.size(), dv = closures_.front().value_mean.size();
  frame.reserve<S>(ClosureBlock<S>::room(m, d, dv, size()) + ClosureMoments<S>::room(m, d, dv) +
                       ClosureRead<S>::room(n, m, size(), d, dv),
                   32);
}

template <class S>
void Closures<S>::append(const ClosureTokens<S>& tokens, const Index* of) {
  if (tokens.size() == 0) return;
  Workspace::Frame frame;
  reserve(frame, 0, tokens.size());
  const auto block = ClosureBlock<S>::of(frame, tokens, of, size());
  take(tokens, block);
  absorb(tokens, block);
}

template <class S>
AttentionStatus Closures<S>::read(Rows<const S> x, const RowSums<S>& out) const {
  return ClosureRead<S>(closures_).run(x, out);
}

template <class S>
AttentionStatus Closures<S>::advance(Rows<const S> x, Index heads, const ClosureTokens<S>& tokens,
                                     const Index* of, const RowSums<S>& out) {
  const Index n = tokens.size();
  if (n == 0) return read(x, out);
  {
    Workspace::Frame frame;
    reserve(frame, x.rows, n);
    const auto block = ClosureBlock<S>::of(frame, tokens, of, size());
    if (n == 1 || admits(tokens, block)) {
      take(tokens, block);
      ClosureRead<S> read(closures_);
      read.see_tokens(tokens, block, heads);
      const AttentionStatus status = read.run(x, out);
      absorb(tokens, block);
      return status;
    }
  }
  const Index early = n / 2, late = n - early, rows = heads * early;
  AttentionStatus status = advance(x.top(rows), heads, tokens.middle(0, early), of, out.middle(0, rows));
  status.add(advance(x.middle(rows, heads * late), heads, tokens.middle(early, late),
                     of ? of + early : nullptr, out.middle(rows, heads * late)),
             rows);
  return status;
}

template <class S>
void Closures<S>::merge(const Closures& other) {
  for (std::size_t g = 0; g < closures_.size(); ++g) closures_[g].merge(other.closures_[g]);
}

template <class S>
bool Closures<S>::admits(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block) const {
  constexpr S kInfinity = std::numeric_limits<S>::infinity();
  const S highest = largest(tokens.all_log_weights());
  if (!(highest < kInfinity && all_finite<S>(tokens.k) && all_finite<S>(tokens.v))) return false;
  for (Index g = 0; g < size(); ++g) {
    if (!closures_[static_cast<std::size_t>(g)].admits(tokens, block, block.begin[g], block.count(g)))
      return false;
  }
  return true;
}

template <class S>
void Closures<S>::take(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block) {
  for (Index g = 0; g < size(); ++g) {
    closures_[static_cast<std::size_t>(g)].take(tokens, block, block.begin[g], block.count(g));
  }
}

template <class S>
void Closures<S>::absorb(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block) {
  for (Index g = 0; g < size(); ++g) {
    closures_[static_cast<std::size_t>(g)].absorb(tokens, block, block.begin[g], block.count(g));
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
