#pragma once

// The state of one Gaussian closure.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/memories/closure_block.hpp>
#include <phiattn/memories/closure_options.hpp>
#include <phiattn/memories/closure_tokens.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Weighted moments of keys y and values v, with weights w_j = exp(a_j) under one log-scale c = max_j a_j:
///
///     Z = sum w,  mu = sum w y / Z,  nu = sum w v / Z,  sum w (y - mu)(y - mu)',  sum w (y - mu)(v - nu)'
///
/// Moments are kept about means, never as raw sums, and every term of a spread is positive: nothing cancels (Chan, Golub &
/// LeVeque 1979 give the rule of union). Z >= 1 after a block, and >= e^-40 for every row inside.
template <class S>
struct ClosureMoments {
  ClosureMoments(Index d, Index dv, const ClosureOptions& given)
      : options(given),
        mean(RowVector<S>::Zero(d)),
        value_mean(RowVector<S>::Zero(dv)),
        second(Matrix<S>::Zero(is_full() ? d : 1, d)),
        cross(Matrix<S>::Zero(d, dv)),
        hull(given.clamp ? dv : 0) {}

  bool is_full() const { return options.covariance == Covariance::full; }
  bool empty() const { return normaliser == 0; }

  /// Whether the normaliser of no row is below e^-40 of that behind the block, whose tokens of this closure are rows
  /// [begin, begin + n) of it.
  bool admits(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index begin, Index n) const;

  /// Those tokens as the block takes them; raises the log-scale to take them in. With none so far, any of them may stand
  /// for the mean.
  void take(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index begin, Index n);

  /// What take() has prepared becomes part of the moments.
  void absorb(const ClosureTokens<S>& tokens, const ClosureBlock<S>& block, Index begin, Index n);

  /// Numbers that absorb() takes, at most.
  static Index room(Index m, Index d, Index dv) { return m * (d + 1) + d + dv; }

  /// Adds the tokens of `other`, by the union of their moments.
  void merge(const ClosureMoments& other);

  ClosureOptions options;
  S log_scale = kNothing<S>;  // c
  S normaliser = 0;           // Z e^-c
  LogCount count;             // N
  RowVector<S> mean;          // mu
  RowVector<S> value_mean;    // nu
  Matrix<S> second;           // Z S e^-c, (d, d), or (1, d) of its diagonal
  Matrix<S> cross;            // Z K' e^-c, (d, dv)
  ValueHull<S> hull;

 private:
  void raise(S to);
  template <class Key, class Value>
  void add_shift(S weight, const Key& key, const Value& value);
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
