#pragma once

// Included by memories/gaussian_closure.hpp where that is not compiled elsewhere.

#include <phiattn/memories/closures-inl.hpp>
#include <phiattn/memories/gaussian_closure.hpp>

#include <algorithm>

namespace phiattn::inline PHIATTN_ABI {

template <detail::ComputeScalar S>
GaussianClosure<S>::GaussianClosure(const Reparametrisation& reparametrisation, Index dv,
                                    const ClosureOptions& closure, const AttentionOptions& options)
    : frame_(reparametrisation, options),
      block_rows_((std::min)(detail::checked_memory_chunk(options), this->kBlockRows)),
      dv_(detail::checked_dv(dv)),
      closure_(1, frame_.dimension(), dv, detail::checked(closure)) {}

template <detail::ComputeScalar S>
void GaussianClosure<S>::append_block(const Tokens<S>& tokens) {
  Workspace::Frame frame;
  closure_.append(frame_.keys(frame, tokens));
  size_ += tokens.size();
}

template <detail::ComputeScalar S>
AttentionStatus GaussianClosure<S>::read_block(const Queries<S>& queries, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  const AttentionStatus status = closure_.read(framed.x, out);
  framed.finish(out);
  return status;
}

template <detail::ComputeScalar S>
AttentionStatus GaussianClosure<S>::advance_block(const Queries<S>& queries, const Tokens<S>& tokens,
                                                  const RowSums<S>& out) {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  const AttentionStatus status =
      closure_.advance(framed.x, queries.heads, frame_.keys(frame, tokens), nullptr, out);
  framed.finish(out);
  size_ += tokens.size();
  return status;
}

template <detail::ComputeScalar S>
void GaussianClosure<S>::check_same(const GaussianClosure& other) const {
  frame_.check_same(other.frame_);
  detail::check_same(closure_.options(), other.closure_.options());
}

template <detail::ComputeScalar S>
void GaussianClosure<S>::absorb(const GaussianClosure& other) {
  closure_.merge(other.closure_);
  size_ += other.size_;
}

}  // namespace phiattn::inline PHIATTN_ABI
