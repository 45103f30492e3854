#pragma once

// One side of a reparametrisation at a given scale, in the compute type.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>

#include <cmath>

namespace phiattn::inline PHIATTN_ABI::detail {

/// An AffineSide for tokens that come times sqrt(scale), in the compute type.
template <class S>
class ScaledSide {
 public:
  template <class Fitted>
  ScaledSide(const AffineSide<Fitted>& side, double scale)
      : diagonal_(side.linear.diagonal().template cast<S>()),
        shift_((std::sqrt(scale) * side.shift).template cast<S>()),
        slope_((std::sqrt(scale) * side.slope).template cast<S>()),
        constant_(static_cast<S>(scale * side.constant)) {
    if (!side.linear.isDiagonal(0)) transposed_ = side.linear.transpose().template cast<S>();
  }

  /// out <- x'
  void transform(const ConstMatrixRef<S>& x, MatrixRef<S> moved, MatrixRef<S> out) const {
    if (is_diagonal()) {
      for (Index t = 0; t < x.rows(); ++t) out.row(t) = (x.row(t) - shift_).cwiseProduct(diagonal_);
      return;
    }
    for (Index t = 0; t < x.rows(); ++t) moved.row(t) = x.row(t) - shift_;
    multiply<S>(moved, transposed_, out);
  }

  bool is_diagonal() const { return transposed_.size() == 0; }

  bool operator==(const ScaledSide& other) const {
    return shift_.size() == other.shift_.size() && is_diagonal() == other.is_diagonal() &&
           transposed_ == other.transposed_ && diagonal_ == other.diagonal_ && shift_ == other.shift_ &&
           slope_ == other.slope_ && constant_ == other.constant_;
  }

  /// log_scale(t) <- log_scale(t) + log-factor of row t
  void add_log_factors(const ConstMatrixRef<S>& x, VectorRef<S> log_scale) const {
    for (Index t = 0; t < x.rows(); ++t) log_scale(t) += (x.row(t) - shift_).dot(slope_) + constant_;
  }

 private:
  Matrix<S> transposed_;  // of the linear part; none if that is diagonal
  RowVector<S> diagonal_;
  RowVector<S> shift_;
  RowVector<S> slope_;
  S constant_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class detail::ScaledSide<float>;
extern template class detail::ScaledSide<double>;
}  // namespace phiattn::inline PHIATTN_ABI
#endif
