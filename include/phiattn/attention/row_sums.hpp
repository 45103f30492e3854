#pragma once

// The one way out of a set of keys: sums that are not divided yet.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/core/workspace.hpp>

#include <algorithm>
#include <limits>

namespace phiattn::inline PHIATTN_ABI {

/// What a block of queries makes of a set J of keys, undivided so that parts add up:
///
///     sums_i = sum_{j in J} sim(q_i, k_j) v_j,   normaliser_i = sum_{j in J} sim(q_i, k_j),   both times exp(-log_scale_i)
///
/// A view. A row over no keys has log_scale kNothing, and zeros.
template <class S>
struct RowSums {
  Rows<S> sums;   // (n, dv)
  S* normaliser;  // (n)
  S* log_scale;   // (n)

  static RowSums of(Workspace::Frame& frame, Index n, Index dv) {
    return {frame.rows<S>(n, dv), frame.numbers<S>(n), frame.numbers<S>(n)};
  }

  Index rows() const { return sums.rows; }
  RowSums middle(Index first, Index n) const {
    return {sums.middle(first, n), normaliser + first, log_scale + first};
  }
  Eigen::Map<RowVector<S>> row(Index i) const { return {sums.row(i), sums.cols}; }

  /// Keys that are NaN leave no scale behind, and yet they are there.
  bool is_nothing(Index i) const { return normaliser[i] == 0 && log_scale[i] == kNothing<S>; }
  void set_nothing() const {
    for (Index i = 0; i < rows(); ++i) set_nothing(i);
  }
  /// All its similarities came out as 0, and should not have.
  void set_out_of_range(Index i) const {
    row(i).setConstant(std::numeric_limits<S>::quiet_NaN());
    normaliser[i] = std::numeric_limits<S>::quiet_NaN();
  }
  /// Makes room for similarities of that log-scale; NaN goes on.
  void raise(Index i, S to) const {
    if (to <= log_scale[i]) return;
    const S shrink = detail::flushed_exp(log_scale[i] - to);
    row(i) *= shrink;
    normaliser[i] *= shrink;
    log_scale[i] = to;
  }
  void set_nothing(Index i) const {
    row(i).setZero();
    normaliser[i] = 0;
    log_scale[i] = kNothing<S>;
  }
};

namespace detail {

/// A key without value, whose similarity to every query is exp(logit), joins the rows that see any key.
template <class S>
void join_sink(const RowSums<S>& rows, S logit) {
  for (Index i = 0; i < rows.rows(); ++i) {
    if (rows.is_nothing(i)) continue;
    const S top = (std::max)(rows.log_scale[i], logit);
    const S kept = flushed_exp(rows.log_scale[i] - top);
    rows.row(i) *= kept;
    rows.normaliser[i] = kept * rows.normaliser[i] + flushed_exp(logit - top);
    rows.log_scale[i] = top;
  }
}

}  // namespace detail

/// into <- the sums over both sets of keys, which must be disjoint. Associative and commutative to rounding; Milakov &
/// Gimelshein 2018 give the rule for softmax.
template <class S>
void combine(const RowSums<S>& into, const RowSums<S>& from) {
  for (Index i = 0; i < into.rows(); ++i) {
    if (from.is_nothing(i)) continue;
    if (into.is_nothing(i)) {
      into.row(i) = from.row(i);
      into.normaliser[i] = from.normaliser[i];
      into.log_scale[i] = from.log_scale[i];
      continue;
    }
    const S top = (std::max)(into.log_scale[i], from.log_scale[i]);
    const S kept = detail::flushed_exp(into.log_scale[i] - top);
    const S added = detail::flushed_exp(from.log_scale[i] - top);
    into.row(i) = kept * into.row(i) + added * from.row(i);
    into.normaliser[i] = kept * into.normaliser[i] + added * from.normaliser[i];
    into.log_scale[i] = top;
  }
}

}  // namespace phiattn::inline PHIATTN_ABI
