#pragma once

// Results over some of the keys, and how they combine. Next: attention/row_results.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phiattn {

/// Attention over a set of keys J, so that results over disjoint sets combine exactly:
///
///     out_i            = sum_{j in J} sim(q_i, k_j) v_j / sum_{j in J} sim(q_i, k_j)      (n_q, dv)
///     log_normaliser_i = log |sum_{j in J} sim(q_i, k_j)|, in the caller's own scores      (n_q)
///     sign_i           = sign of that sum: 1, or -1 for signed similarities                (n_q)
///
/// A row over no keys has out 0, log_normaliser -inf and sign 1.
template <class S>
struct Partial {
  Matrix<S> out;
  Vector<S> log_normaliser;
  Vector<S> sign;

  static Partial empty(Index n_q, Index dv) {
    return {Matrix<S>::Zero(n_q, dv), Vector<S>::Constant(n_q, -std::numeric_limits<S>::infinity()),
            Vector<S>::Ones(n_q)};
  }
};

/// The result over the union of two disjoint sets of keys, for the same queries. Associative and commutative to
/// rounding; Partial::empty is its identity. Milakov & Gimelshein 2018 give the rule for softmax.
/// @throws std::invalid_argument  if the two differ in shape
template <class S>
Partial<S> combine(const Partial<S>& a, const Partial<S>& b) {
  detail::check_equal("rows of the second partial", b.out.rows(), "rows of the first", a.out.rows());
  detail::check_equal("columns of the second partial", b.out.cols(), "columns of the first", a.out.cols());
  Partial<S> both = Partial<S>::empty(a.out.rows(), a.out.cols());
  for (Index i = 0; i < a.out.rows(); ++i) {
    const S log_a = a.log_normaliser(i);
    const S log_b = b.log_normaliser(i);
    constexpr S kNone = -std::numeric_limits<S>::infinity();
    if (log_a == kNone && log_b == kNone) continue;
    const S largest = std::max(log_a, log_b);
    const S weight_a = a.sign(i) * std::exp(log_a - largest);
    const S weight_b = b.sign(i) * std::exp(log_b - largest);
    const S sum = weight_a + weight_b;
    // A side without keys has weight 0 and out 0.
    both.out.row(i) = (weight_a / sum) * a.out.row(i) + (weight_b / sum) * b.out.row(i);
    both.log_normaliser(i) = largest + std::log(std::abs(sum));
    both.sign(i) = sum < 0 ? S(-1) : S(1);
  }
  return both;
}

}  // namespace phiattn
