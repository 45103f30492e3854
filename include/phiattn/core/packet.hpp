#pragma once

// The vector registers of the machine, through Eigen's packets. Next: core/exp.hpp.

#include <phiattn/core/matrix.hpp>

#include <type_traits>
#include <utility>

namespace phiattn::detail {

/// As many S as a register holds. S itself is the packet of one, for what is left over at the end of a row.
template <class S>
using Packet = typename Eigen::internal::packet_traits<S>::type;

template <class S>
inline constexpr Index kPacket = Eigen::internal::packet_traits<S>::size;

/// n rounded up to whole packets.
template <class S>
constexpr Index padded(Index n) {
  return (n + kPacket<S> - 1) / kPacket<S> * kPacket<S>;
}

/// The length to give rows of n numbers whose columns are walked: whole packets, and a cache line more where rows would
/// lie a multiple of 256 bytes apart, for then one column of all rows competes for a part of the first-level cache.
template <class S>
constexpr Index spread(Index n) {
  const Index whole = padded<S>(n);
  return whole * Index{sizeof(S)} % 256 == 0 ? whole + Index{64} / Index{sizeof(S)} : whole;
}

template <class Step, int... I>
EIGEN_ALWAYS_INLINE void unroll(std::integer_sequence<int, I...>, const Step& step) {
  (step(std::integral_constant<int, I>{}), ...);
}

/// step(0) ... step(N - 1) with constants: what it writes to an array of packets stays in registers, whatever the
/// optimisation level.
template <int N, class Step>
EIGEN_ALWAYS_INLINE void unroll(const Step& step) {
  unroll(std::make_integer_sequence<int, N>{}, step);
}

/// step.operator()<N>(i) over [0, n) in steps of N = Most units, then of 1.
template <int Most, class Step>
EIGEN_ALWAYS_INLINE void in_steps(Index n, Index unit, const Step& step) {
  Index i = 0;
  for (; i + Most * unit <= n; i += Most * unit) step.template operator()<Most>(i);
  for (; i < n; i += unit) step.template operator()<1>(i);
}

/// Neither NaN nor infinity in x, whose rows are contiguous.
template <class S>
bool all_finite(const ConstMatrixRef<S>& x) {
  using namespace Eigen::internal;
  using P = Packet<S>;
  // 0 times any of the others is NaN.
  P sum = pset1<P>(S(0));
  S rest = 0;
  for (Index t = 0; t < x.rows(); ++t) {
    const S* row = x.data() + t * x.outerStride();
    Index i = 0;
    for (; i + kPacket<S> <= x.cols(); i += kPacket<S>) sum = pmadd(ploadu<P>(row + i), pset1<P>(S(0)), sum);
    for (; i < x.cols(); ++i) rest += row[i] * S(0);
  }
  return predux(sum) + rest == 0;
}

}  // namespace phiattn::detail

/// On the lambdas given to unroll(): inline even where the compiler would rather not.
#define PHIATTN_INLINE __attribute__((always_inline))
