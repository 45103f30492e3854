#pragma once

// One token of softmax attention: what a decoding step costs while there are few keys.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/output.hpp>
#include <phiattn/core/packet.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Keys that a step weighs at once; beyond, what a call costs beside its keys is little.
inline constexpr Index kStepKeys = 256;

/// Numbers of scratch that a step takes.
template <class S>
constexpr Index step_room(Index heads, Index d, Index dv, Index n) {
  return heads * (d + dv + padded<S>(n) + 1);
}

/// out <- softmax attention of one query a head to all of the keys, at most kStepKeys, without the checks, masks and running
/// maxima of tiles. False, and nothing is written, if the scores of a row are not finite, which those are for.
/// @param factor  of the queries
template <class S>
bool attend_step(const InputGroup<S>& q, S factor, Rows<const S> k, Rows<const S> v, const S* log_weights,
                 const OutputGroup<S>& out);

}  // namespace phiattn::inline PHIATTN_ABI::detail

#define PHIATTN_STEP_INSTANCES(prefix, S)                                                              \
  prefix template bool attend_step<S>(const InputGroup<S>&, S, Rows<const S>, Rows<const S>, const S*, \
                                      const OutputGroup<S>&);

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
PHIATTN_STEP_INSTANCES(extern, float)
PHIATTN_STEP_INSTANCES(extern, double)
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/attention/step-inl.hpp>
#endif
