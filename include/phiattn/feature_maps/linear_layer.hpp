#pragma once

// What trained and sampled maps do to a token first.

#include <phiattn/core/check.hpp>
#include <phiattn/projection/projection.hpp>

#include <optional>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// W x + b: W (m, d) given or the identity, b (m) given or 0.
///
/// Converts from what it may be made of: a dimension d, a matrix, a projection. Immutable; copies share W.
/// Cost: 2 n m d flops for n tokens, none for the identity.
template <detail::ComputeScalar S>
class LinearLayer {
 public:
  /// x itself.
  /// @throws std::invalid_argument  if d < 1
  LinearLayer(Index d) : dimension_(d) { detail::check_at_least("dimension d of a feature map", d, 1); }

  /// W x
  /// @throws std::invalid_argument  if W has log-weights: they belong to an expectation, not to a layer
  LinearLayer(Projection<S> w) : dimension_(w.cols()), w_(std::move(w)) {
    if (w_->log_weights().size() > 0) {
      detail::fail_argument(
          "projection of a feature map: it has log-weights, which only random features use");
    }
  }

  /// @throws std::invalid_argument  if W has no rows or no columns
  template <class Derived>
  LinearLayer(const Eigen::MatrixBase<Derived>& w) : LinearLayer(Projection<S>(w)) {}

  /// W x + b
  /// @param b  (m), a row or a column
  /// @throws std::invalid_argument  also if b is no vector of m entries
  template <class W>
  LinearLayer(const W& w, const Input<S>& b) : LinearLayer(w) {
    detail::check_vector("the bias", b.rows(), b.cols(), "rows of the projection", feature_dimension());
    Matrix<S> column(b.size(), 1);
    b.as_column().load(0, S(1), column);
    bias_ = column.transpose();
  }

  Index dimension() const { return dimension_; }
  Index feature_dimension() const { return w_ ? w_->rows() : dimension_; }

  /// out <- x W^T + b, for tokens x (n, d).
  void apply(const ConstMatrixRef<S>& x, MatrixRef<S> out) const {
    if (w_) {
      w_->project(x, out);
    } else {
      out = x;
    }
    if (bias_.size() > 0) out.rowwise() += bias_;
  }

 private:
  Index dimension_;
  std::optional<Projection<S>> w_;  // none: the identity
  RowVector<S> bias_;               // of size 0: none
};

}  // namespace phiattn::inline PHIATTN_ABI
