#pragma once

// How queries read closures.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/memories/closure_block.hpp>
#include <phiattn/memories/closure_moments.hpp>
#include <phiattn/memories/closure_running.hpp>

#include <cstddef>
#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// One block of queries x (n, d) against several closures and what each row sees of the block's own tokens, all under one
/// normaliser. With y_j = x . (y_j - mu_0) the scores, where 0 marks the moments before the block (S_0, K_0 as sums),
///
///     ybar = sum w_j y_j / Z,   Z sigma^2 = x' S_0 x + Z_0 ybar^2 + sum w_j (y_j - ybar)^2
///     out = nu_0 + (tau K_0 x + sum w_j (1 + tau (y_j - ybar)) (v_j - nu_0)) / Z
///
/// is what one closure says of exp(x . y) (see GaussianClosure). Queries come as lengths times units, so that squares
/// stay in range.
template <class S>
class ClosureRead {
 public:
  explicit ClosureRead(const std::vector<ClosureMoments<S>>& closures)
      : closures_(closures), count_(static_cast<Index>(closures.size())) {}

  /// The block's own tokens, one for each `heads` rows.
  void see_tokens(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index heads) {
    tokens_ = &tokens;
    block_ = &block;
    heads_ = heads;
  }

  AttentionStatus run(Rows<const S> x, const RowSums<S>& out) const;

  /// Numbers that run() takes, at most.
  static Index room(Index n, Index m, Index closures, Index d, Index dv) {
    return n * (m + 3 * d + dv + 1 + 5 * closures) + closures * dv + d +
           RunningClosures<S>::room(closures, d);
  }

 private:
  /// What is known of each pair of a query and a token or closure.
  struct Tables {
    Rows<S> units;    // (n, d)
    S* lengths;       // (n)
    Rows<S> scores;   // (n, m): y_j of units, then what the token weighs
    Rows<S> spreads;  // (n, closures): of units, Z sigma^2, or x' S_0 x of a full covariance
    Rows<S> centres;  // (n, 2 closures): of units, x . mu_0, and then ybar
    Rows<S> slopes;   // (n, closures): tau of units, then the factor of K_0 x
    Rows<S> weights;  // (n, closures): log-normalisers, then what the closure weighs
  };

  const ClosureMoments<S>& closure(Index g) const { return closures_[static_cast<std::size_t>(g)]; }
  bool is_full() const { return closures_.front().is_full(); }
  bool clamps() const { return closures_.front().options.clamp; }
  Index tokens() const { return block_ ? block_->size() : 0; }
  /// Row t of one closure's tokens, which stand as they came, sees no more than the first t + 1.
  Index diagonal() const { return count_ == 1 ? 0 : kNoDiagonal; }

  Tables multiply_all(Workspace::Frame& frame, Rows<const S> x) const;
  void see_row(Index t, const Tables& tables, const RunningClosures<S>& running, Rows<S> squares) const;
  S variance(Index t, Index g, const Tables& tables, const RunningClosures<S>& running) const;
  void estimate(Index t, Index g, const Tables& tables, const RunningClosures<S>& running) const;
  void weigh_row(Index t, const Tables& tables, const RunningClosures<S>& running,
                 const RowSums<S>& out) const;
  void weigh_tokens(Index t, Index g, S factor, const Tables& tables,
                    const RunningClosures<S>& running) const;
  void add_slopes(Index g, const Tables& tables, Rows<S> sums) const;
  void add_up(const Tables& tables, Rows<S> sums) const;
  AttentionStatus add_up_clamped(const Tables& tables, const RowSums<S>& out) const;

  const std::vector<ClosureMoments<S>>& closures_;
  Index count_;
  const ClosureTokens<S>* tokens_ = nullptr;
  const ClosureBlock<S>* block_ = nullptr;
  Index heads_ = 1;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
