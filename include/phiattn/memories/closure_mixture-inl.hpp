#pragma once

// Included by memories/closure_mixture.hpp where that is not compiled elsewhere.

#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/closures-inl.hpp>

#include <algorithm>

namespace phiattn::inline PHIATTN_ABI {

template <detail::ComputeScalar S>
ClosureMixture<S>::ClosureMixture(const Input<double>& centres, const Reparametrisation& reparametrisation,
                                  Index dv, const ClosureOptions& closure, const AttentionOptions& options)
    : frame_(reparametrisation, options),
      block_rows_((std::min)(detail::checked_memory_chunk(options), this->kBlockRows)),
      dv_(detail::checked_dv(dv)),
      codebook_(centres, frame_),
      closures_(codebook_.size(), frame_.dimension(), dv, detail::checked(closure)) {}

template <detail::ComputeScalar S>
void ClosureMixture<S>::append_block(const Tokens<S>& tokens) {
  Workspace::Frame frame;
  const auto keys = frame_.keys(frame, tokens);
  closures_.append(keys, codebook_.nearest(frame, keys.k));
  size_ += tokens.size();
}

template <detail::ComputeScalar S>
AttentionStatus ClosureMixture<S>::read_block(const Queries<S>& queries, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  const AttentionStatus status = closures_.read(framed.x, out);
  framed.finish(out);
  return status;
}

template <detail::ComputeScalar S>
AttentionStatus ClosureMixture<S>::advance_block(const Queries<S>& queries, const Tokens<S>& tokens,
                                                 const RowSums<S>& out) {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  const auto keys = frame_.keys(frame, tokens);
  const AttentionStatus status =
      closures_.advance(framed.x, queries.heads, keys, codebook_.nearest(frame, keys.k), out);
  framed.finish(out);
  size_ += tokens.size();
  return status;
}

template <detail::ComputeScalar S>
void ClosureMixture<S>::check_same(const ClosureMixture& other) const {
  codebook_.check_same(other.codebook_);
  frame_.check_same(other.frame_);
  detail::check_same(closures_.options(), other.closures_.options());
}

template <detail::ComputeScalar S>
void ClosureMixture<S>::absorb(const ClosureMixture& other) {
  closures_.merge(other.closures_);
  size_ += other.size_;
}

}  // namespace phiattn::inline PHIATTN_ABI
