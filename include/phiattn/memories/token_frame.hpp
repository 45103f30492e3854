#pragma once

// Queries and keys in the coordinates that a memory works in. Next: memories/closure_options.hpp.

#include <phiattn/attention/options.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

#include <memory>

namespace phiattn::detail {

/// Scale and reparametrisation of exp(scale q . k), so that with x = query(q), y = key(k)
///
///     scale q . k = x . y + log-weight of k + log-factor of q
template <class S>
class TokenFrame {
 public:
  TokenFrame(const Reparametrisation& reparametrisation, const AttentionOptions& options)
      : root_scale_(
            root_scale<S>(options, ExponentialKernel<S>::default_scale(reparametrisation.dimension()))),
        dimension_(reparametrisation.dimension()) {
    sides_ = std::make_shared<const Sides>(
        Sides{{reparametrisation.query_side(), scale()}, {reparametrisation.key_side(), scale()}});
  }

  static Reparametrisation identity(Index d) {
    return Reparametrisation::shift(Vector<double>::Zero(d), Vector<double>::Zero(d));
  }

  Index dimension() const { return dimension_; }
  S root() const { return root_scale_; }
  double scale() const { return static_cast<double>(root_scale_) * static_cast<double>(root_scale_); }

  void check_dimension(const char* what, Index d) const { check_equal(what, d, "dimension d", dimension_); }

  /// Memories merge if they see alike.
  void check_same(const TokenFrame& other) const {
    check_equal("dimension d of the other memory", other.dimension_, "dimension d of this one", dimension_);
    if (other.root_scale_ != root_scale_) fail_argument("merge: the memories differ in scale");
  }

  /// x <- query(q), log_factors <- theirs. `moved` is scratch of the same shape.
  void queries(const ConstMatrixRef<S>& q, MatrixRef<S> moved, MatrixRef<S> x,
               VectorRef<S> log_factors) const {
    log_factors.setZero();
    transform(sides_->query, q, moved, x, log_factors);
  }

  /// y <- key(k), log_weights <- log_weights + theirs, but for those that are -inf.
  void keys(const ConstMatrixRef<S>& k, MatrixRef<S> moved, MatrixRef<S> y, VectorRef<S> log_weights) const {
    transform(sides_->key, k, moved, y, log_weights);
  }

 private:
  struct Sides {
    ScaledSide<S> query, key;
  };

  void transform(const ScaledSide<S>& side, const ConstMatrixRef<S>& tokens, MatrixRef<S> moved,
                 MatrixRef<S> x, VectorRef<S> log_factors) const {
    x = root_scale_ * tokens;
    side.add_log_factors(x, log_factors);
    if (side.is_diagonal()) {
      side.transform(x, x, x);
    } else {
      moved = x;
      side.transform(moved, moved, x);
    }
  }

  S root_scale_;
  Index dimension_;
  std::shared_ptr<const Sides> sides_;
};

}  // namespace phiattn::detail
