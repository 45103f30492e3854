#pragma once

// The one exponential of the library. Next: core/product.hpp.

#include <phiattn/core/matrix.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace phiattn::detail {

/// exp(x), exactly 0 where exp(x) is below the smallest normal number (x = -inf included), NaN where x is NaN.
/// Eigen's packet exponential alone promises neither: it clamps its argument.
template <class S>
struct FlushedExp {
  /// ln of the smallest normal number, 2^(min_exponent - 1).
  static constexpr S kLowest = S(std::numeric_limits<S>::min_exponent - 1) * std::numbers::ln2_v<S>;

  S operator()(S x) const { return x < kLowest ? S(0) : std::exp(x); }

  template <class Packet>
  Packet packetOp(const Packet& x) const {
    using namespace Eigen::internal;
    const Packet zero = pset1<Packet>(S(0));
    const Packet kept = pselect(pcmp_lt(x, pset1<Packet>(kLowest)), zero, pexp(x));
    return pselect(pcmp_eq(x, x), kept, x);
  }
};

}  // namespace phiattn::detail

template <class S>
struct Eigen::internal::functor_traits<phiattn::detail::FlushedExp<S>> {
  enum {
    Cost = functor_traits<scalar_exp_op<S>>::Cost,
    PacketAccess = functor_traits<scalar_exp_op<S>>::PacketAccess
  };
};

namespace phiattn::detail {

template <class S>
S flushed_exp(S x) {
  return FlushedExp<S>{}(x);
}

/// x <- exp(x - shift) over one row or one column of contiguous numbers.
template <class Derived>
void exp_shifted(Eigen::MatrixBase<Derived>&& x, typename Derived::Scalar shift) {
  using S = typename Derived::Scalar;
  x.derived() = (x.derived().array() - shift).unaryExpr(FlushedExp<S>{}).matrix();
}

/// The largest entry, -inf of none, NaN if there is one (plain maxCoeff may drop it).
template <class Derived>
typename Derived::Scalar largest(const Eigen::DenseBase<Derived>& x) {
  using S = typename Derived::Scalar;
  return x.size() == 0 ? -std::numeric_limits<S>::infinity() : x.template maxCoeff<Eigen::PropagateNaN>();
}

}  // namespace phiattn::detail
