#pragma once

// Included by attention/step.hpp where that is not compiled elsewhere.

#include <phiattn/attention/step.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/float_environment.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/workspace.hpp>

#include <algorithm>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// x (n, in whole packets) <- exp(x + log_weights - their maximum), 0 in the padding; returns the sum, or NaN where the
/// maximum is not finite.
template <class S>
S weigh_scores(S* x, const S* log_weights, Index n) {
  using P = Packet<S>;
  const Index whole = padded<S>(n);
  P top = pset1<P>(-std::numeric_limits<S>::infinity());
  for (Index j = 0; j < n; ++j) x[j] += log_weights[j];
  std::fill(x + n, x + whole, -std::numeric_limits<S>::infinity());
  for (Index j = 0; j < whole; j += kPacket<S>) top = pmax(ploadu<P>(x + j), top);
  const S highest = predux_max(top);
  if (!(std::abs(highest) < std::numeric_limits<S>::infinity())) return std::numeric_limits<S>::quiet_NaN();
  const P shift = pset1<P>(highest);
  P sum = pset1<P>(S(0));
  for (Index j = 0; j < whole; j += kPacket<S>) {
    const P weight = packet_exp_to_one<S>(P(psub(ploadu<P>(x + j), shift)));
    sum = padd(sum, weight);
    pstoreu(x + j, weight);
  }
  return predux(sum);
}

template <class S>
bool attend_step(const InputGroup<S>& q, S factor, Rows<const S> k, Rows<const S> v, const S* log_weights,
                 const OutputGroup<S>& out) {
  const FloatEnvironment environment;
  Workspace::Frame frame;
  const Index heads = q.heads(), d = q.cols(), dv = v.cols, n = k.rows, whole = padded<S>(n);
  S* const room = frame.numbers<S>(step_room<S>(heads, d, dv, n));
  const Rows<S> queries(room, heads, d), sums(room + heads * d, heads, dv);
  const Rows<S> weights(room + heads * (d + dv), heads, n, whole);
  q.load(0, factor, queries);
  multiply_transposed<S>(queries, k, weights);
  S* const normaliser = weights.row(heads);
  for (Index h = 0; h < heads; ++h) {
    normaliser[h] = weigh_scores(weights.row(h), log_weights, n);
    if (!(normaliser[h] > 0)) return false;
  }
  multiply<S>(weights, v, sums);
  for (Index h = 0; h < heads; ++h) Eigen::Map<RowVector<S>>(sums.row(h), dv) /= normaliser[h];
  out.store(0, sums);
  return true;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
