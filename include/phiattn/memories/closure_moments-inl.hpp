#pragma once

// Included where closures are compiled.

#include <phiattn/attention/state_scale.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/closure_moments.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// out <- a - b
template <class S>
void subtract(const S* a, const S* b, S* out, Index n) {
  in_packets<S>(n, [&]<class P>(Index j)
                       PHIATTN_INLINE { pstoreu(out + j, P(psub(ploadu<P>(a + j), ploadu<P>(b + j)))); });
}

/// x_j <- x_j - mean, weighted_j <- w_j x_j and, if wanted, squares <- squares + sum_j w_j x_j^2.
template <class S>
void weigh_about(const S* mean, const S* weights, Rows<S> x, Rows<S> weighted, S* squares) {
  const Index n = x.rows, stride = x.stride, weighted_stride = weighted.stride;
  in_packets<S>(x.cols, [&]<class P>(Index j) PHIATTN_INLINE {
    const P of_mean = ploadu<P>(mean + j);
    P sum = squares ? ploadu<P>(squares + j) : pset1<P>(S(0));
    S *from = x.data + j, *to = weighted.data + j;
    for (Index t = 0; t < n; ++t, from += stride, to += weighted_stride) {
      const P deviation = psub(ploadu<P>(from), of_mean);
      const P product = pmul(pset1<P>(weights[t]), deviation);
      sum = pmadd(product, deviation, sum);
      pstoreu(from, deviation);
      pstoreu(to, product);
    }
    if (squares) pstoreu(squares + j, sum);
  });
}

template <class S>
bool ClosureMoments<S>::admits(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index begin,
                               Index n) const {
  if (n == 0) return true;
  const auto log_weight = [&](Index j) { return tokens.log_weights[block.order[begin + j]]; };
  S highest = log_weight(0);
  for (Index j = 1; j < n; ++j) highest = (std::max)(highest, log_weight(j));
  // The log-scale only grows along the rows: the first row that sees anything decides.
  const bool first_decides = empty() || block.order[begin] == 0;
  const S running = first_decides ? (std::max)(log_scale, log_weight(0)) : log_scale;
  return (std::max)(log_scale, highest) - running <= kSafeGap<S>;
}

template <class S>
void ClosureMoments<S>::raise(S to) {
  if (to == log_scale) return;
  const S shrink = flushed_exp(log_scale - to);
  log_scale = to;
  if (normaliser == 0) return;
  normaliser *= shrink;
  second *= shrink;
  cross *= shrink;
}

template <class S>
void ClosureMoments<S>::take(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index begin,
                             Index n) {
  if (n == 0) return;
  Eigen::Map<Vector<S>> weights(block.weights + begin, n);
  const Index* const order = block.order + begin;
  for (Index j = 0; j < n; ++j) weights(j) = tokens.log_weights[order[j]];
  const S highest = largest(weights);
  raise(highest > log_scale || std::isnan(highest) ? highest : log_scale);
  exp_shifted(weights.head(n), log_scale);
  if (empty()) {
    Index first = 0;
    while (first + 1 < n && weights(first) == 0) ++first;
    mean = tokens.key(order[first]);
    value_mean = tokens.value(order[first]);
  }
  for (Index j = 0; j < n; ++j) {
    subtract(tokens.k.row(order[j]), mean.data(), block.keys.row(begin + j), mean.size());
    subtract(tokens.v.row(order[j]), value_mean.data(), block.values.row(begin + j), value_mean.size());
  }
}

template <class S>
void ClosureMoments<S>::absorb(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index begin,
                               Index n) {
  for (Index j = begin; j < begin + n; ++j) {
    count.add(static_cast<double>(block.log_counts[j]));
    hull.add(tokens.value(block.order[j]));
  }
  const Eigen::Map<const Vector<S>> weights(block.weights + begin, n);
  const S sum = normaliser + weights.sum();
  if (sum == normaliser) return;
  Workspace::Frame frame;
  const Rows<S> keys = block.keys.middle(begin, n), values = block.values.middle(begin, n);
  const Rows<S> shares = frame.rows<S>(1, n);
  const Rows<S> shift = frame.rows<S>(1, keys.cols), value_shift = frame.rows<S>(1, values.cols);
  for (Index j = 0; j < n; ++j) shares(0, j) = weights(j) / sum;
  multiply<S>(shares, keys, shift);
  multiply<S>(shares, values, value_shift);
  if (n == 1) {
    // w (1 - w/Z)^2 + Z_0 (w/Z)^2 = Z_0 w / Z
    if (normaliser != 0) add_shift(normaliser * shares(0, 0), keys.eigen().row(0), values.eigen().row(0));
  } else {
    const Rows<S> weighted = frame.rows<S>(n, keys.cols);
    if (is_full()) {
      for (Index l = 0; l < keys.cols; ++l) second.row(l) += (normaliser * shift(0, l)) * shift.eigen();
    } else {
      second.row(0) += normaliser * shift.eigen().cwiseAbs2();
    }
    weigh_about<S>(shift.data, weights.data(), keys, weighted, is_full() ? nullptr : second.data());
    if (is_full()) transposed_multiply_add<S>(weighted, keys, second);
    // Values are still about their mean before the block: sum w (y - mu)(v - nu_0)' is the new moment less the old one,
    // shift and all (Welford 1962).
    transposed_multiply_add<S>(weighted, values, cross);
  }
  mean += shift.eigen();
  value_mean += value_shift.eigen();
  normaliser = sum;
}

template <class S>
void ClosureMoments<S>::merge(const ClosureMoments& other) {
  count.merge(other.count);
  hull.merge(other.hull);
  if (other.empty()) return;
  if (empty()) {
    mean = other.mean;
    value_mean = other.value_mean;
  }
  raise((std::max)(log_scale, other.log_scale));
  const S weight = flushed_exp(other.log_scale - log_scale);
  const S sum = normaliser + weight * other.normaliser;
  const S share = weight * other.normaliser / sum;
  const RowVector<S> shift = other.mean - mean;
  const RowVector<S> value_shift = other.value_mean - value_mean;
  second += weight * other.second;
  cross += weight * other.cross;
  add_shift(normaliser * share, shift, value_shift);
  mean += share * shift;
  value_mean += share * value_shift;
  normaliser = sum;
}

/// Weight on the outer products of one deviation of key and value.
template <class S>
template <class Key, class Value>
void ClosureMoments<S>::add_shift(S weight, const Key& key, const Value& value) {
  if (is_full()) {
    for (Index l = 0; l < key.size(); ++l) second.row(l) += (weight * key(l)) * key;
  } else {
    second.row(0) += weight * key.cwiseProduct(key);
  }
  for (Index l = 0; l < key.size(); ++l) cross.row(l) += (weight * key(l)) * value;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
