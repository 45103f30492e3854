#pragma once

// Exact attention to the clusters that matter, a summary of the others. Next: memories/token_queue.hpp.

#include <phiattn/core/scratch.hpp>
#include <phiattn/memories/block_memory.hpp>
#include <phiattn/memories/cluster_read.hpp>
#include <phiattn/memories/cluster_store.hpp>
#include <phiattn/memories/codebook.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/token_frame.hpp>

#include <cstddef>
#include <limits>
#include <vector>

namespace phiattn {

/// A key-value cache in C clusters, of which each query reads the `top` that hold most of its attention; of every other
/// only a summary, its mass n = sum w, its mean key mu and value nu and the diagonal D of its keys' covariance:
///
///     log-normaliser_c = ln n + x . mu + tau sigma^2 - tau^2 sigma^2 / 2,   out_c = nu,   sigma^2 = x' D x
///
/// with the tau of GaussianClosure; the same estimate says which clusters matter. With top = C it is exact.
/// Cost: a query reads C (2 d + dv) + top n (d + dv) / C numbers; n (d + dv + 1) + C (2 d + dv) numbers of memory.
template <detail::ComputeScalar S>
class ClusterMemory : public detail::BlockMemory<ClusterMemory<S>, S> {
 public:
  /// @param centres            (C, d), in the coordinates of the reparametrisation: k_means(r.keys(k), C)
  /// @param reparametrisation  should balance queries and keys, c.then(diagonal_balance(c.queries(q), c.keys(k)))
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if there are no centres or of another dimension, if dv < 0, or on an option that
  ///                                is out of range
  ClusterMemory(const Input<double>& centres, const Reparametrisation& reparametrisation, Index dv,
                const ClusterOptions& clusters = {}, const AttentionOptions& options = {})
      : frame_(reparametrisation, options),
        block_rows_(detail::checked_block_rows(options)),
        dv_(detail::checked_dv(dv)),
        options_(detail::checked(clusters)),
        codebook_(centres, frame_),
        buckets_(static_cast<std::size_t>(centres.rows())) {
    summaries_.resize(codebook_.size(), frame_.dimension(), dv);
  }

  Index clusters() const { return codebook_.size(); }
  Index size() const { return size_; }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  /// Adds the tokens of `other`, a memory of the same centres, reparametrisation, scale, dv and options.
  void merge(const ClusterMemory& other) {
    frame_.check_same(other.frame_);
    codebook_.check_same(other.codebook_);
    detail::check_equal("dv of the other memory", other.dv_, "dv of this one", dv_);
    for (Index c = 0; c < clusters(); ++c) {
      summaries_.merge(c, other.summaries_);
      bucket(c).append(other.bucket(c));
    }
    size_ += other.size_;
  }

  // What Windowed drives; see detail::BlockMemory.
  Index block_rows() const { return block_rows_; }
  void check_dimension(const char* what, Index d) const { frame_.check_dimension(what, d); }

  void append_block(const detail::TokenRows<S>& tokens) {
    const auto keys = work_->block.load_keys(frame_, tokens);
    const auto& nearest = codebook_.nearest(keys.k, work_->codebook);
    for (Index j = 0; j < keys.size(); ++j) add(keys, j, nearest[static_cast<std::size_t>(j)]);
    size_ += tokens.size();
  }

  AttentionStatus read_block(const ConstMatrixRef<S>& q, Index /*first*/,
                             detail::PartialRows<S> results) const {
    work_.with([&](Work& work) {
      work.read.versions.of.clear();
      read_rows(q, results, work);
    });
    return {};
  }

  /// In one block if all tokens are finite, else row by row: 0 times a value that a row does not see is NaN.
  AttentionStatus advance_block(const ConstMatrixRef<S>& q, const detail::TokenRows<S>& tokens,
                                detail::PartialRows<S> results) {
    const Index n = q.rows();
    if (n > 1 && !is_finite(tokens)) {
      for (Index t = 0; t < n; ++t) {
        advance_block(q.middleRows(t, 1), tokens.slice(t, 1), results.slice(t, 1));
      }
      return {};
    }
    auto& versions = work_->read.versions;
    versions.of.clear();
    if (n == 1) {
      append_block(tokens);
      read_rows(q, results, *work_);
      return {};
    }
    work_->before = summaries_;
    const auto keys = work_->block.load_keys(frame_, tokens);
    const auto& nearest = codebook_.nearest(keys.k, work_->codebook);
    versions.summaries.resize(n, frame_.dimension(), dv_);
    for (Index j = 0; j < n; ++j) {
      const Index c = nearest[static_cast<std::size_t>(j)];
      add(keys, j, c);
      versions.summaries.copy(j, c, summaries_);
      versions.of.push_back(c);
    }
    size_ += n;
    read_rows(q, results, *work_);
    return {};
  }

 private:
  struct Work {
    detail::ClosureBlock<S> block;
    detail::CodebookWork<S> codebook;
    detail::ClusterRead<S> read;
    detail::ClusterSummaries<S> before;
  };

  detail::ClusterBucket<S>& bucket(Index c) { return buckets_[static_cast<std::size_t>(c)]; }
  const detail::ClusterBucket<S>& bucket(Index c) const { return buckets_[static_cast<std::size_t>(c)]; }

  /// A key of weight 0 does not exist.
  void add(const detail::ClosureTokens<S>& tokens, Index j, Index c) {
    if (tokens.log_weights(j) == -std::numeric_limits<S>::infinity()) return;
    summaries_.add(c, tokens, j);
    bucket(c).push(tokens, j);
  }

  static bool is_finite(const detail::TokenRows<S>& tokens) {
    constexpr S kInfinity = std::numeric_limits<S>::infinity();
    return detail::largest(tokens.k.cwiseAbs()) < kInfinity &&
           detail::largest(tokens.v.cwiseAbs()) < kInfinity &&
           detail::largest(tokens.log_weights) < kInfinity;
  }

  void read_rows(const ConstMatrixRef<S>& q, detail::PartialRows<S> results, Work& work) const {
    const auto x = work.block.load_queries(frame_, q);
    work.read.run(x, work.read.versions.of.empty() ? summaries_ : work.before, buckets_, options_, results);
    work.block.finish(results);
  }

  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  ClusterOptions options_;
  detail::Codebook<S> codebook_;
  detail::ClusterSummaries<S> summaries_;
  std::vector<detail::ClusterBucket<S>> buckets_;
  Index size_ = 0;
  detail::KeptScratch<Work> work_;
};

static_assert(Memory<ClusterMemory<float>> && Memory<ClusterMemory<double>>);

}  // namespace phiattn
