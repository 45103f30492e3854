#pragma once

// Several Gaussian closures, each for the keys around a centre.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/core/abi.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/memories/closure_moments.hpp>
#include <phiattn/memories/codebook.hpp>
#include <phiattn/memories/token_frame.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// The tokens of a block, sorted by centre.
template <class S>
class TokenGroups {
 public:
  /// @param nearest  the centre of each token, all below `groups`
  TokenGroups(Workspace::Frame& frame, const ClosureTokens<S>& tokens, const Index* nearest, Index groups)
      : n_(tokens.size()),
        begin_(frame.numbers<Index>(groups + 1)),
        order_(frame.numbers<Index>(n_)),
        visible_(frame.numbers<Index>(n_)),
        k_(frame.rows<S>(n_, tokens.k.cols)),
        v_(frame.rows<S>(n_, tokens.v.cols)),
        log_weights_(frame.numbers<S>(n_)),
        log_counts_(frame.numbers<S>(n_)) {
    std::fill_n(begin_, groups + 1, Index{0});
    for (Index j = 0; j < n_; ++j) ++begin_[nearest[j]];
    for (Index g = 0, next = 0; g <= groups; ++g) next += std::exchange(begin_[g], next);
    // Each token takes the next place of its group, which moves begin_ on by one group.
    for (Index j = 0; j < n_; ++j) {
      const Index slot = begin_[nearest[j]]++;
      order_[slot] = j;
      std::copy_n(tokens.k.row(j), k_.cols, k_.row(slot));
      std::copy_n(tokens.v.row(j), v_.cols, v_.row(slot));
      log_weights_[slot] = tokens.log_weights[j];
      log_counts_[slot] = tokens.log_counts[j];
    }
  }

  ClosureTokens<S> tokens(Index g) const {
    const Index first = begin(g), n = begin_[g] - first;
    return {k_.middle(first, n), v_.middle(first, n), log_weights_ + first, log_counts_ + first};
  }

  /// How many tokens of the group each of the block's rows sees, row t those at or before it; until the next call.
  VisibleTokens visible(Index g, Index heads) const {
    Index slot = begin(g);
    for (Index t = 0, seen = 0; t < n_; ++t) {
      for (; slot < begin_[g] && order_[slot] <= t; ++slot) ++seen;
      visible_[t] = seen;
    }
    return VisibleTokens(heads, visible_);
  }

 private:
  Index begin(Index g) const { return g == 0 ? 0 : begin_[g - 1]; }

  Index n_;
  Index* begin_;  // of the group behind
  Index *order_, *visible_;
  Rows<S> k_, v_;
  S *log_weights_, *log_counts_;
};

}  // namespace detail

/// G Gaussian closures under one normaliser, G (d^2 + d dv) numbers however many keys there are: each key is added to
/// the closure whose centre is nearest, so that within each the second order that a closure takes is enough,
///
///     exp(log-normaliser) = sum_g exp(log-normaliser_g),   out = sum_g exp(log-normaliser_g - log-normaliser) out_g
///
/// Cost: as GaussianClosure, G times for queries and once for keys; 2 n G d flops to find the centres.
template <detail::ComputeScalar S>
class ClosureMixture : public MemoryBase<ClosureMixture<S>, S> {
 public:
  /// @param centres            (G, d), in the coordinates of the reparametrisation: k_means(r.keys(k), G)
  /// @param reparametrisation  should balance queries and keys, c.then(diagonal_balance(c.queries(q), c.keys(k)))
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if there are no centres or of another dimension, if dv < 0, or on an option that
  ///                                is out of range
  ClosureMixture(const Input<double>& centres, const Reparametrisation& reparametrisation, Index dv,
                 const ClosureOptions& closure = {}, const AttentionOptions& options = {});

  Index closures() const { return codebook_.size(); }
  Index size() const { return size_; }
  Index dimension() const { return frame_.dimension(); }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  // What MemoryBase works with; see BlockModel.
  void forget_all() {
    const detail::ClosureMoments<S> empty(dimension(), dv_, closures_.front().options());
    std::vector<detail::ClosureMoments<S>> all(closures_.size(), empty);
    closures_.swap(all);
    size_ = {};
  }
  bool takes_groups() const { return true; }
  Index block_rows() const { return block_rows_; }
  void append_block(const Tokens<S>& tokens);
  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const;
  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out);
  void check_same(const ClosureMixture& other) const;
  void absorb(const ClosureMixture& other);

 private:
  detail::ClosureMoments<S>& closure(Index g) { return closures_[static_cast<std::size_t>(g)]; }
  const detail::ClosureMoments<S>& closure(Index g) const { return closures_[static_cast<std::size_t>(g)]; }

  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  detail::Codebook<S> codebook_;
  std::vector<detail::ClosureMoments<S>> closures_;
  detail::Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class ClosureMixture<float>;
extern template class ClosureMixture<double>;
}  // namespace phiattn::inline PHIATTN_ABI
#else
#include <phiattn/memories/closure_mixture-inl.hpp>
#endif
