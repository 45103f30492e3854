#pragma once

// Queries and keys in the coordinates that a memory works in.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/tokens.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/closure_tokens.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

#include <algorithm>
#include <memory>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Reparametrisation of exp(scale q . k) at its scale, so that with x = query(q), y = key(k)
///
///     scale q . k = x . y + log-weight of k + log-factor of q
///
/// for q and k that come times sqrt(scale).
template <class S>
class TokenFrame {
 public:
  TokenFrame(const Reparametrisation& reparametrisation, const AttentionOptions& options)
      : scale_(checked_scale<S>(options, ExponentialKernel<S>::default_scale(reparametrisation.dimension()))),
        dimension_(reparametrisation.dimension()),
        sides_(std::make_shared<const Sides>(
            Sides{{reparametrisation.query_side(), scale_}, {reparametrisation.key_side(), scale_}})) {}

  static Reparametrisation identity(Index d) {
    return Reparametrisation::shift(Vector<double>::Zero(d), Vector<double>::Zero(d));
  }

  Index dimension() const { return dimension_; }
  double scale() const { return scale_; }

  void check_same(const TokenFrame& other) const {
    if (sides_ != other.sides_ && !(*sides_ == *other.sides_)) {
      fail_argument("merge: the memories differ in their reparametrisation");
    }
  }

  /// x (n, d) and log-factors (n).
  struct FramedQueries {
    Rows<S> x;
    S* log_factors;

    /// From the frame's scores to the caller's.
    void finish(const RowSums<S>& out) const {
      for (Index t = 0; t < out.rows(); ++t) {
        if (!out.is_nothing(t)) out.log_scale[t] += log_factors[t];
      }
    }
  };

  FramedQueries queries(Workspace::Frame& frame, Rows<const S> q) const {
    const FramedQueries framed{frame.rows<S>(q.rows, q.cols), frame.numbers<S>(q.rows)};
    std::fill_n(framed.log_factors, q.rows, S(0));
    transform(sides_->query, q, framed.x, framed.log_factors);
    return framed;
  }

  ClosureTokens<S> keys(Workspace::Frame& frame, const Tokens<S>& tokens) const {
    const Index n = tokens.size();
    const Rows<S> y = frame.rows<S>(n, tokens.k.cols);
    S* const log_weights = frame.numbers<S>(n);
    S* const log_counts = frame.numbers<S>(n);
    for (Index j = 0; j < n; ++j) log_weights[j] = log_counts[j] = tokens.log_weight(j);
    transform(sides_->key, tokens.k, y, log_weights);
    return {y, tokens.v, log_weights, log_counts};
  }

 private:
  struct Sides {
    ScaledSide<S> query, key;
    bool operator==(const Sides& other) const { return query == other.query && key == other.key; }
  };

  static void transform(const ScaledSide<S>& side, Rows<const S> tokens, Rows<S> x, S* log_factors) {
    Workspace::Frame frame;
    const Rows<S> moved = side.is_diagonal() ? x : frame.rows<S>(x.rows, x.cols);
    side.add_log_factors(tokens.eigen(), Eigen::Map<Vector<S>>(log_factors, x.rows));
    side.transform(tokens.eigen(), moved.eigen(), x.eigen());
  }

  double scale_;
  Index dimension_;
  std::shared_ptr<const Sides> sides_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
