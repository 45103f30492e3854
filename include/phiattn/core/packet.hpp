#pragma once

// The vector registers of the machine, through Eigen's packets: the one place that names Eigen's insides.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

using Eigen::internal::PacketBlock;
using Eigen::internal::padd;
using Eigen::internal::pcmp_eq;
using Eigen::internal::pcmp_lt;
using Eigen::internal::ploadu;
using Eigen::internal::pmadd;
using Eigen::internal::pmax;
using Eigen::internal::pmin;
using Eigen::internal::pmul;
using Eigen::internal::predux;
using Eigen::internal::predux_max;
using Eigen::internal::pselect;
using Eigen::internal::pset1;
using Eigen::internal::psqrt;
using Eigen::internal::pstoreu;
using Eigen::internal::psub;
using Eigen::internal::ptranspose;
using Eigen::internal::unpacket_traits;

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
/// optimisation level. The bound of that array is to be std::size_t{N}: gcc warns of an int (-Wsign-conversion).
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

/// step.operator()<P>(j) over [0, n): of packets P = Packet<S> as long as they are whole, then of single numbers, P = S.
template <class S, class Step>
EIGEN_ALWAYS_INLINE void in_packets(Index n, const Step& step) {
  Index j = 0;
  for (; j + kPacket<S> <= n; j += kPacket<S>) step.template operator()<Packet<S>>(j);
  for (; j < n; ++j) step.template operator()<S>(j);
}

/// e^x by the library's own exponential, for Eigen's expressions: core/exp.hpp.
template <class S>
struct FlushedExp;

}  // namespace phiattn::inline PHIATTN_ABI::detail

template <class S>
struct Eigen::internal::functor_traits<phiattn::detail::FlushedExp<S>> {
  enum { Cost = functor_traits<scalar_exp_op<S>>::Cost, PacketAccess = packet_traits<S>::Vectorizable };
};

/// On the lambdas given to unroll(): inline even where the compiler would rather not.
#define PHIATTN_INLINE __attribute__((always_inline))

PHIATTN_HUSH_END
