#pragma once

// Included by memories/closure_mixture.hpp where that is not compiled elsewhere.

#include <phiattn/memories/closure_mixture.hpp>

namespace phiattn::inline PHIATTN_ABI {

template <detail::ComputeScalar S>
ClosureMixture<S>::ClosureMixture(const Input<double>& centres, const Reparametrisation& reparametrisation,
                                  Index dv, const ClosureOptions& closure, const AttentionOptions& options)
    : frame_(reparametrisation, options),
      block_rows_((std::min)(detail::checked_memory_chunk(options), this->kBlockRows)),
      dv_(detail::checked_dv(dv)),
      codebook_(centres, frame_),
      closures_(static_cast<std::size_t>(centres.rows()),
                detail::ClosureMoments<S>(frame_.dimension(), dv, detail::checked(closure))) {}

template <detail::ComputeScalar S>
void ClosureMixture<S>::append_block(const Tokens<S>& tokens) {
  Workspace::Frame frame;
  const auto keys = frame_.keys(frame, tokens);
  const detail::TokenGroups<S> groups(frame, keys, codebook_.nearest(frame, keys.k), closures());
  closures_.front().reserve(frame, 0, tokens.size());
  for (Index g = 0; g < closures(); ++g) closure(g).append(groups.tokens(g));
  size_ += tokens.size();
}

template <detail::ComputeScalar S>
AttentionStatus ClosureMixture<S>::read_block(const Queries<S>& queries, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  const auto part = RowSums<S>::of(frame, queries.rows(), dv_);
  AttentionStatus status;
  out.set_nothing();
  for (Index g = 0; g < closures(); ++g) {
    if (closure(g).empty()) continue;
    status.add(closure(g).read(framed.x, part), 0);
    combine(out, part);
  }
  framed.finish(out);
  return status;
}

template <detail::ComputeScalar S>
AttentionStatus ClosureMixture<S>::advance_block(const Queries<S>& queries, const Tokens<S>& tokens,
                                                 const RowSums<S>& out) {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  const auto keys = frame_.keys(frame, tokens);
  const detail::TokenGroups<S> groups(frame, keys, codebook_.nearest(frame, keys.k), closures());
  const auto part = RowSums<S>::of(frame, queries.rows(), dv_);
  AttentionStatus status;
  out.set_nothing();
  closures_.front().reserve(frame, queries.rows(), tokens.size());
  for (Index g = 0; g < closures(); ++g) {
    const auto of_group = groups.tokens(g);
    if (closure(g).empty() && of_group.size() == 0) continue;
    status.add(closure(g).advance(framed.x, of_group, groups.visible(g, queries.heads), part), 0);
    combine(out, part);
  }
  framed.finish(out);
  size_ += tokens.size();
  return status;
}

template <detail::ComputeScalar S>
void ClosureMixture<S>::check_same(const ClosureMixture& other) const {
  codebook_.check_same(other.codebook_);
  frame_.check_same(other.frame_);
  detail::check_same(closures_.front().options(), other.closures_.front().options());
}

template <detail::ComputeScalar S>
void ClosureMixture<S>::absorb(const ClosureMixture& other) {
  for (std::size_t g = 0; g < closures_.size(); ++g) closures_[g].merge(other.closures_[g]);
  size_ += other.size_;
}

}  // namespace phiattn::inline PHIATTN_ABI
