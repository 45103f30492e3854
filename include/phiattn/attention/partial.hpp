#pragma once

// Results over some of the keys, and how they combine.

#include <phiattn/attention/row_sums.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>

#include <cmath>
#include <limits>

namespace phiattn::inline PHIATTN_ABI {

/// Attention over a set of keys J, so that results over disjoint sets combine exactly:
///
///     out_i            = sum_{j in J} sim(q_i, k_j) v_j / sum_{j in J} sim(q_i, k_j)      (n_q, dv)
///     log_normaliser_i = log |sum_{j in J} sim(q_i, k_j)|, in the caller's own scores      (n_q)
///     sign_i           = sign of that sum: 1, or -1 for signed similarities                (n_q)
///
/// A row over no keys has out 0, log_normaliser -inf and sign 1. What combines are the undivided sums, which come along,
/// so that a part whose normaliser vanishes is not lost; one that was made of the first three alone is taken as they say.
template <class S>
struct Partial {
  Matrix<S> out;
  Vector<S> log_normaliser;
  Vector<S> sign;

  Matrix<S> sums = {};                        // (n_q, dv), or of size 0
  Vector<S> normaliser = {}, log_scale = {};  // (n_q); see RowSums

  static Partial empty(Index n_q, Index dv) {
    Partial partial{Matrix<S>::Zero(n_q, dv), Vector<S>::Constant(n_q, -std::numeric_limits<S>::infinity()),
                    Vector<S>::Ones(n_q)};
    partial.undivide();
    return partial;
  }

  RowSums<S> row_sums() { return {sums, normaliser.data(), log_scale.data()}; }

  /// The undivided sums, if they did not come along.
  void undivide() {
    if (normaliser.size() == out.rows()) return;
    sums = sign.asDiagonal() * out;
    normaliser = sign;
    log_scale = log_normaliser.cwiseMax(kNothing<S>);
    for (Index i = 0; i < out.rows(); ++i) {
      if (log_normaliser(i) == -std::numeric_limits<S>::infinity()) row_sums().set_nothing(i);
    }
  }

  /// The results, from the undivided sums.
  void divide() {
    for (Index i = 0; i < out.rows(); ++i) {
      const S z = normaliser(i);
      const bool nothing = row_sums().is_nothing(i);
      out.row(i) = sums.row(i) / (nothing ? S(1) : z);
      log_normaliser(i) =
          nothing ? -std::numeric_limits<S>::infinity() : std::log(std::abs(z)) + log_scale(i);
      sign(i) = z < 0 ? S(-1) : S(1);
    }
  }
};

/// The result over the union of two disjoint sets of keys, for the same queries. Associative and commutative to
/// rounding; Partial::empty is its identity.
/// @throws std::invalid_argument  if the two differ in shape
template <class S>
Partial<S> combine(const Partial<S>& a, const Partial<S>& b) {
  detail::check_equal("rows of the second partial", b.out.rows(), "rows of the first", a.out.rows());
  detail::check_equal("columns of the second partial", b.out.cols(), "columns of the first", a.out.cols());
  Partial<S> both = a, other = b;
  both.undivide();
  other.undivide();
  combine(both.row_sums(), other.row_sums());
  both.divide();
  return both;
}

/// An attention sink joins each row, once, when partial results have been combined: exp(logit) is added to the normaliser,
/// unless there is no key.
template <class S>
void join_sink(Partial<S>& partial, double logit) {
  partial.undivide();
  detail::join_sink(partial.row_sums(), static_cast<S>(logit));
  partial.divide();
}

}  // namespace phiattn::inline PHIATTN_ABI
