#pragma once

// The one exponential of the library.

#include <phiattn/core/packet.hpp>

#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numbers>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// (e^r - 1 - r)/r^2 for |r| <= ln(2)/2 as a polynomial through the Chebyshev nodes, relative to e^r good to 1.1e-8 in
/// float and 1.8e-17 in double; and ln 2 as a sum whose first term has trailing zeros, so that n times it is exact.
template <class S>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Bits = std::uint32_t;
  static constexpr float kLn2High = 0.693359375F;
  static constexpr float kLn2Low = -2.12194440e-4F;
  static constexpr float kCoefficients[] = {1.3926250831497611e-3F, 8.3632328836826184e-3F,
                                            4.1666554212984153e-2F, 1.6666576666119928e-1F, 0.5F};
};

template <>
struct ExpConstants<double> {
  using Bits = std::uint64_t;
  static constexpr double kLn2High = 6.93145751953125e-1;
  static constexpr double kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kCoefficients[] = {2.5100472505694996e-08, 2.7620201591031547e-07,
                                             2.7557268276905696e-06, 2.4801521057868204e-05,
                                             1.9841269863171557e-04, 1.3888888917367081e-03,
                                             8.3333333333300390e-03, 4.1666666666623824e-02,
                                             1.6666666666666669e-01, 0.5};
};

/// x 2^(bits of an integer): an exponent made from an integer that lies in the last bits of `n`.
template <class S, class P>
EIGEN_ALWAYS_INLINE P exponent_of(const P& n) {
  using Bits = typename ExpConstants<S>::Bits;
  constexpr int kMantissa = std::numeric_limits<S>::digits - 1;
  if constexpr (sizeof(P) == sizeof(S)) {
    return std::bit_cast<P>(std::bit_cast<Bits>(n) << kMantissa);
  } else {
    using BitsPacket __attribute__((vector_size(sizeof(P)))) = Bits;
    return std::bit_cast<P>(std::bit_cast<BitsPacket>(n) << kMantissa);
  }
}

/// exp(x) to about 1 unit in the last place for x <= 0, as 2^n e^r with n = round(x / ln 2): exactly 0 from
/// -ln(2) (bias + 1/2) down (-inf included), NaN for NaN. Eigen's packet exponential promises neither, and takes longer.
template <class S, class P>
EIGEN_ALWAYS_INLINE P packet_exp_to_one(const P& x) {
  using Constants = ExpConstants<S>;
  constexpr S kBias = std::numeric_limits<S>::max_exponent - 1;
  // Adding it rounds to an integer, which then stands in the last bits, with the bias of the exponent on it.
  constexpr S kRounder = S(Index{3} << (std::numeric_limits<S>::digits - 2)) + kBias;
  const P clamped = pmax(x, pset1<P>(-kBias * std::numbers::ln2_v<S>));
  const P rounded = pmadd(clamped, pset1<P>(std::numbers::log2e_v<S>), pset1<P>(kRounder));
  const P n = psub(rounded, pset1<P>(kRounder));
  const P r = pmadd(n, pset1<P>(-Constants::kLn2Low), pmadd(n, pset1<P>(-Constants::kLn2High), clamped));
  P sum = pset1<P>(Constants::kCoefficients[0]);
  unroll<std::size(Constants::kCoefficients) - 1>(
      [&](auto i) PHIATTN_INLINE { sum = pmadd(sum, r, pset1<P>(Constants::kCoefficients[i + 1])); });
  return pmul(padd(pmadd(sum, pmul(r, r), r), pset1<P>(S(1))), exponent_of<S>(rounded));
}

/// The same for any x: inf from ln(2) (bias + 1/2) up.
template <class S, class P>
EIGEN_ALWAYS_INLINE P packet_exp(const P& x) {
  constexpr S kTop = std::numeric_limits<S>::max_exponent * std::numbers::ln2_v<S>;
  return packet_exp_to_one<S>(P(pmin(x, pset1<P>(kTop))));
}

template <class S>
S flushed_exp(S x) {
  return packet_exp<S>(x);
}

/// flushed_exp() for Eigen's expressions.
template <class S>
struct FlushedExp {
  S operator()(S x) const { return flushed_exp(x); }

  template <class P>
  P packetOp(const P& x) const {
    return packet_exp<S>(x);
  }
};

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

/// What a query is divided by so that its squares stay in range: its largest entry without sign, 1 if all are 0.
template <class Derived>
typename Derived::Scalar length_of(const Eigen::MatrixBase<Derived>& x) {
  using S = typename Derived::Scalar;
  const S length = largest(x.cwiseAbs());
  return length == 0 ? S(1) : length;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
