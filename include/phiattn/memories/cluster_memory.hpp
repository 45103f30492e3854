#pragma once

// Exact attention to the clusters that matter, a summary of the others.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/core/abi.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/memories/cluster_read.hpp>
#include <phiattn/memories/cluster_store.hpp>
#include <phiattn/memories/codebook.hpp>
#include <phiattn/memories/token_frame.hpp>

#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// A key-value cache in C clusters, of which each query reads the `top` that hold most of its attention; of every other
/// only a summary, its mass n = sum w, its mean key mu and value nu and the diagonal D of its keys' covariance:
///
///     log-normaliser_c = ln n + x . mu + tau sigma^2 - tau^2 sigma^2 / 2,   out_c = nu,   sigma^2 = x' D x
///
/// with the tau of GaussianClosure; the same estimate says which clusters matter. With top = C it is exact.
/// Cost: a query reads C (2 d + dv) + top n (d + dv) / C numbers; n (d + dv + 1) + C (2 d + dv) numbers of memory.
template <detail::ComputeScalar S>
class ClusterMemory : public MemoryBase<ClusterMemory<S>, S> {
 public:
  /// @param centres            (C, d), in the coordinates of the reparametrisation: k_means(r.keys(k), C)
  /// @param reparametrisation  should balance queries and keys, c.then(diagonal_balance(c.queries(q), c.keys(k)))
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if there are no centres or of another dimension, if dv < 0, or on an option that
  ///                                is out of range
  ClusterMemory(const Input<double>& centres, const Reparametrisation& reparametrisation, Index dv,
                const ClusterOptions& clusters = {}, const AttentionOptions& options = {});

  Index clusters() const { return codebook_.size(); }
  Index size() const { return size_; }
  Index dimension() const { return frame_.dimension(); }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  // What MemoryBase works with; see BlockModel.
  void forget_all() {
    store_ = detail::ClusterStore<S>(clusters(), dimension(), dv_);
    for (auto& bucket : buckets_) bucket.truncate(0);
    size_ = {};
  }
  bool takes_groups() const { return true; }
  Index block_rows() const { return block_rows_; }
  void append_block(const Tokens<S>& tokens);
  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const;
  /// In one block if all tokens are finite, else row by row: 0 times a value that a row does not see is NaN.
  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out);
  void check_same(const ClusterMemory& other) const;
  void absorb(const ClusterMemory& other);

 private:
  /// For n tokens more, before any of them is added: adding does not throw.
  void make_room(Workspace::Frame& frame, const Index* nearest, Index n);
  void add(const detail::ClosureTokens<S>& tokens, Index j, Index c);

  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  ClusterOptions options_;
  detail::Codebook<S> codebook_;
  detail::ClusterStore<S> store_;
  std::vector<detail::TokenStore<S>> buckets_;  // of each cluster, in the order they came
  detail::Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class ClusterMemory<float>;
extern template class ClusterMemory<double>;
}  // namespace phiattn::inline PHIATTN_ABI
#else
#include <phiattn/memories/cluster_memory-inl.hpp>
#endif
