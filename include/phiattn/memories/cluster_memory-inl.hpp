#pragma once

// Included by memories/cluster_memory.hpp where that is not compiled elsewhere.

#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/cluster_read-inl.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace phiattn::inline PHIATTN_ABI {

template <detail::ComputeScalar S>
ClusterMemory<S>::ClusterMemory(const Input<double>& centres, const Reparametrisation& reparametrisation,
                                Index dv, const ClusterOptions& clusters, const AttentionOptions& options)
    : frame_(reparametrisation, options),
      block_rows_((std::min)(detail::checked_memory_chunk(options), this->kBlockRows)),
      dv_(detail::checked_dv(dv)),
      options_(detail::checked(clusters)),
      codebook_(centres, frame_),
      store_(codebook_.size(), frame_.dimension(), dv),
      buckets_(static_cast<std::size_t>(centres.rows()), detail::TokenStore<S>(dv)) {}

template <detail::ComputeScalar S>
void ClusterMemory<S>::append_block(const Tokens<S>& tokens) {
  Workspace::Frame frame;
  const auto keys = frame_.keys(frame, tokens);
  const Index* nearest = codebook_.nearest(frame, keys.k);
  make_room(frame, nearest, keys.size());
  for (Index j = 0; j < keys.size(); ++j) add(keys, j, nearest[j]);
  size_ += tokens.size();
}

template <detail::ComputeScalar S>
AttentionStatus ClusterMemory<S>::read_block(const Queries<S>& queries, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const auto framed = frame_.queries(frame, queries.q);
  detail::ClusterRead<S>(store_.summaries(), buckets_, options_).run(framed.x, out);
  framed.finish(out);
  return {};
}

template <detail::ComputeScalar S>
AttentionStatus ClusterMemory<S>::advance_block(const Queries<S>& queries, const Tokens<S>& tokens,
                                                const RowSums<S>& out) {
  Workspace::Frame frame;
  const Index n = tokens.size();
  if (n == 1) {
    append_block(tokens);
    return read_block(queries, out);
  }
  const auto keys = frame_.keys(frame, tokens);
  const bool finite = detail::all_finite<S>(tokens.k) && detail::all_finite<S>(tokens.v) &&
                      detail::largest(keys.all_log_weights()) < std::numeric_limits<S>::infinity();
  if (!finite) {
    for (Index t = 0; t < n; ++t)
      advance_block(queries.middle(t, 1), tokens.middle(t, 1), out.middle(queries.heads * t, queries.heads));
    return {};
  }
  const Index d = dimension();
  const auto store = store_.summaries();
  const auto before = detail::ClusterSummaries<S>::of(frame, clusters(), d, dv_);
  for (Index c = 0; c < clusters(); ++c) before.copy(c, c, store);
  const auto framed = frame_.queries(frame, queries.q);
  const Index* nearest = codebook_.nearest(frame, keys.k);
  const auto after = detail::ClusterSummaries<S>::of(frame, n, d, dv_);
  make_room(frame, nearest, n);
  for (Index j = 0; j < n; ++j) {
    add(keys, j, nearest[j]);
    after.copy(j, nearest[j], store);
  }
  size_ += n;
  detail::ClusterRead<S> read(before, buckets_, options_);
  read.see_tokens(n, queries.heads, nearest, after);
  read.run(framed.x, out);
  framed.finish(out);
  return {};
}

template <detail::ComputeScalar S>
void ClusterMemory<S>::check_same(const ClusterMemory& other) const {
  codebook_.check_same(other.codebook_);
  frame_.check_same(other.frame_);
  detail::check_equal("top of the other memory", other.options_.top, "top of this one", options_.top);
  if (other.options_.freezing != options_.freezing) {
    detail::fail_argument("merge: the memories differ in freezing");
  }
}

template <detail::ComputeScalar S>
void ClusterMemory<S>::absorb(const ClusterMemory& other) {
  for (std::size_t c = 0; c < buckets_.size(); ++c) {
    store_.summaries().merge(static_cast<Index>(c), other.store_.summaries());
    buckets_[c].push(other.buckets_[c].all());
  }
  size_ += other.size_;
}

template <detail::ComputeScalar S>
void ClusterMemory<S>::make_room(Workspace::Frame& frame, const Index* nearest, Index n) {
  auto* const coming = frame.numbers<Index>(clusters());
  std::fill_n(coming, clusters(), Index{0});
  for (Index j = 0; j < n; ++j) ++coming[nearest[j]];
  for (Index c = 0; c < clusters(); ++c) {
    if (coming[c] > 0) buckets_[static_cast<std::size_t>(c)].make_room(coming[c], dimension());
  }
}

template <detail::ComputeScalar S>
void ClusterMemory<S>::add(const detail::ClosureTokens<S>& tokens, Index j, Index c) {
  store_.summaries().add(c, tokens, j);
  const auto token = tokens.middle(j, 1);
  buckets_[static_cast<std::size_t>(c)].push({token.k, token.v, token.log_weights, 0});
}

}  // namespace phiattn::inline PHIATTN_ABI
