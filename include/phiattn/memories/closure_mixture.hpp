#pragma once

// Several Gaussian closures, each for the keys around a centre. Next: memories/cluster_store.hpp.

#include <phiattn/core/scratch.hpp>
#include <phiattn/memories/block_memory.hpp>
#include <phiattn/memories/closure_moments.hpp>
#include <phiattn/memories/codebook.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/token_frame.hpp>

#include <cstddef>
#include <vector>

namespace phiattn {

namespace detail {

/// Sorts the tokens of a block by centre.
template <class S>
class TokenGroups {
 public:
  /// @param nearest  the centre of each token, all below `groups`
  void sort(const ClosureTokens<S>& tokens, const std::vector<Index>& nearest, Index groups) {
    const Index n = tokens.size();
    begin_.assign(static_cast<std::size_t>(groups) + 1, 0);
    for (Index j = 0; j < n; ++j) ++begin_[at(nearest[at(j)]) + 1];
    for (std::size_t g = 1; g < begin_.size(); ++g) begin_[g] += begin_[g - 1];
    reserve(k_, n, tokens.k.cols());
    reserve(v_, n, tokens.v.cols());
    reserve(log_weights_, n, 1);
    reserve(log_counts_, n, 1);
    order_.resize(at(n));
    next_.assign(begin_.begin(), begin_.end() - 1);
    for (Index j = 0; j < n; ++j) {
      const Index slot = next_[at(nearest[at(j)])]++;
      order_[at(slot)] = j;
      k_.row(slot) = tokens.k.row(j);
      v_.row(slot) = tokens.v.row(j);
      log_weights_(slot) = tokens.log_weights(j);
      log_counts_(slot) = tokens.log_counts(j);
    }
  }

  ClosureTokens<S> tokens(Index g) const {
    const Index first = begin_[at(g)];
    const Index n = begin_[at(g) + 1] - first;
    return {k_.middleRows(first, n), v_.middleRows(first, n), log_weights_.segment(first, n),
            log_counts_.segment(first, n)};
  }

  /// How many tokens of the group each of the block's n rows sees, row t those at or before it.
  VisibleTokens visible(Index g, Index n) {
    visible_.resize(at(n));
    const Index end = begin_[at(g) + 1];
    Index slot = begin_[at(g)];
    for (Index t = 0, seen = 0; t < n; ++t) {
      for (; slot < end && order_[at(slot)] <= t; ++slot) ++seen;
      visible_[at(t)] = seen;
    }
    return VisibleTokens(visible_.data());
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  std::vector<Index> begin_, next_, order_, visible_;
  Matrix<S> k_, v_;
  Vector<S> log_weights_, log_counts_;
};

}  // namespace detail

/// G Gaussian closures under one normaliser, G (d^2 + d dv) numbers however many keys there are: each key is added to
/// the closure whose centre is nearest, so that within each the second order that a closure takes is enough,
///
///     exp(log-normaliser) = sum_g exp(log-normaliser_g),   out = sum_g exp(log-normaliser_g - log-normaliser) out_g
///
/// Cost: as GaussianClosure, G times for queries and once for keys; 2 n G d flops to find the centres.
template <detail::ComputeScalar S>
class ClosureMixture : public detail::BlockMemory<ClosureMixture<S>, S> {
 public:
  /// @param centres            (G, d), in the coordinates of the reparametrisation: k_means(r.keys(k), G)
  /// @param reparametrisation  should balance queries and keys, c.then(diagonal_balance(c.queries(q), c.keys(k)))
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if there are no centres or of another dimension, if dv < 0, or on an option that
  ///                                is out of range
  ClosureMixture(const Input<double>& centres, const Reparametrisation& reparametrisation, Index dv,
                 const ClosureOptions& closure = {}, const AttentionOptions& options = {})
      : frame_(reparametrisation, options),
        block_rows_(detail::checked_block_rows(options)),
        dv_(detail::checked_dv(dv)),
        codebook_(centres, frame_),
        closures_(static_cast<std::size_t>(centres.rows()),
                  detail::ClosureMoments<S>(frame_.dimension(), dv, detail::checked(closure))) {}

  Index closures() const { return codebook_.size(); }
  Index size() const { return size_; }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  /// Adds the tokens of `other`, a mixture of the same centres, reparametrisation, scale, dv and options.
  void merge(const ClosureMixture& other) {
    frame_.check_same(other.frame_);
    codebook_.check_same(other.codebook_);
    detail::check_equal("dv of the other mixture", other.dv_, "dv of this one", dv_);
    for (std::size_t g = 0; g < closures_.size(); ++g) closures_[g].merge(other.closures_[g]);
    size_ += other.size_;
  }

  // What Windowed drives; see detail::BlockMemory.
  Index block_rows() const { return block_rows_; }
  void check_dimension(const char* what, Index d) const { frame_.check_dimension(what, d); }

  void append_block(const detail::TokenRows<S>& tokens) {
    load_keys(tokens);
    for (Index g = 0; g < closures(); ++g) closure(g).append(work_->groups.tokens(g), work_->block.moments);
  }

  AttentionStatus read_block(const ConstMatrixRef<S>& q, Index /*first*/,
                             detail::PartialRows<S> results) const {
    AttentionStatus status;
    results.set_nothing();
    work_.with([&](Work& work) {
      const auto x = work.block.load_queries(frame_, q);
      for (Index g = 0; g < closures(); ++g) {
        if (closure(g).empty()) continue;
        auto part = work.results.results(q.rows(), dv_);
        status.add(closure(g).read(x, part, work.block.moments), 0);
        detail::combine_rows<S>(results, part);
      }
      work.block.finish(results);
    });
    return status;
  }

  AttentionStatus advance_block(const ConstMatrixRef<S>& q, const detail::TokenRows<S>& tokens,
                                detail::PartialRows<S> results) {
    load_keys(tokens);
    const auto x = work_->block.load_queries(frame_, q);
    AttentionStatus status;
    results.set_nothing();
    for (Index g = 0; g < closures(); ++g) {
      const auto keys = work_->groups.tokens(g);
      if (closure(g).empty() && keys.size() == 0) continue;
      auto part = work_->results.results(q.rows(), dv_);
      status.add(closure(g).advance(x, keys, work_->groups.visible(g, q.rows()), part, work_->block.moments),
                 0);
      detail::combine_rows<S>(results, part);
    }
    work_->block.finish(results);
    return status;
  }

 private:
  struct Work {
    detail::ClosureBlock<S> block;
    detail::TokenGroups<S> groups;
    detail::CodebookWork<S> codebook;
    detail::BlockBuffers<S> results;
  };

  detail::ClosureMoments<S>& closure(Index g) { return closures_[static_cast<std::size_t>(g)]; }
  const detail::ClosureMoments<S>& closure(Index g) const { return closures_[static_cast<std::size_t>(g)]; }

  void load_keys(const detail::TokenRows<S>& tokens) {
    const auto keys = work_->block.load_keys(frame_, tokens);
    work_->groups.sort(keys, codebook_.nearest(keys.k, work_->codebook), closures());
    size_ += tokens.size();
  }

  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  detail::Codebook<S> codebook_;
  std::vector<detail::ClosureMoments<S>> closures_;
  Index size_ = 0;
  detail::KeptScratch<Work> work_;
};

static_assert(Memory<ClosureMixture<float>> && Memory<ClosureMixture<double>>);

}  // namespace phiattn
