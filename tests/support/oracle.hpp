// Attention by its definition: naive loops in long double that share nothing with the library but its options.
#pragma once

#include <phiattn/attention/options.hpp>
#include <phiattn/masks/mask.hpp>

#include <Eigen/Core>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace oracle {

using Eigen::Index;
using Real = long double;
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
using Token = Eigen::Ref<const Eigen::Matrix<Real, 1, Eigen::Dynamic>>;

inline constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

/// sim(q, k) = sign exp(log). Arithmetic of relative precision eps gives it to within a few
/// eps (1 + exponent) exp(log_bound): log_bound bounds the terms that may cancel, exponent the exponents taken.
struct Term {
  Real log;
  Real sign;
  Real log_bound;
  Real exponent;
};

/// A similarity of two scaled tokens.
struct Similarity {
  std::function<Term(const Token& q, const Token& k)> pair;
  bool inverse_sqrt_scale;  // default scale 1/sqrt(d), else 1

  Real default_scale(Index d) const {
    return inverse_sqrt_scale && d > 0 ? 1 / std::sqrt(static_cast<Real>(d)) : Real(1);
  }
};

/// log sum_i exp(x_i)
Real log_sum_exp(const std::vector<Real>& x);

/// exp(q . k)
Similarity exponential();

/// T_n(q . k) = sum_{m <= n} (q . k)^m / m!
Similarity taylor(Index n);

/// (1 + q . k / n)^n, by the binomial theorem.
Similarity exponential_limit(Index n);

/// sum_i phi(q_i) phi(k_i),  phi(x) = x + 1 where x > 0, exp(x) elsewhere
Similarity elu();

/// 1/m sum_i w_i exp(omega_i . q - |q|^2/2) exp(omega_i . k - |k|^2/2)
/// @param log_weights  ln w_i (m); empty: 0
Similarity random_features(const Matrix& omega, Vector log_weights = {});

/// Whether query i may attend to key j.
bool sees(const phiattn::AttentionOptions& options, Index n_q, Index n_k, Index i, Index j);

/// The same as a function, or that of a mask, read index by index.
using Sees = std::function<bool(Index i, Index j)>;

Sees sees(const phiattn::AttentionOptions& options, Index n_q, Index n_k);

template <phiattn::Mask M>
Sees sees(const M& mask, Index n_k) {
  return [=](Index i, Index j) {
    const phiattn::KeyRange keys = mask.keys(i, n_k);
    return keys.begin <= j && j < keys.end;
  };
}

/// What attention has to give, for the rows in `rows`.
struct Expected {
  std::vector<Index> rows;
  Matrix out;             // (n_q, dv)
  Matrix weights;         // (n_q, n_k)
  Vector log_normaliser;  // (n_q), of the sum's absolute value
  Vector sign;            // (n_q)
  Vector condition;  // (n_q): errors in units of eps, relative to 1 for weights and to largest_value for out
  Real largest_value = 0;
};

/// @param log_weights  (n_k), or empty for none
/// @param every        computes row 0, every, 2 every, ... and the last
///
/// Rounding in the similarities and in the sums is of relative size eps times
///
///     kappa_i = sum_j |bound_ij| / |sum_j sim_ij| (1 + B_i),     B_i = max_j exponent_ij + |w_j| + |log_normaliser_i|
///
/// and errors of N operations add up to sqrt(N) of them (Higham & Mary 2019); N = d + n_k here.
Expected attend(const Similarity& similarity, const Matrix& q, const Matrix& k, const Matrix& v,
                const phiattn::AttentionOptions& options, const Sees& sees,
                const std::vector<Real>& log_weights = {}, Index every = 1);

/// With the keys that the options show.
Expected attend(const Similarity& similarity, const Matrix& q, const Matrix& k, const Matrix& v,
                const phiattn::AttentionOptions& options = {}, const std::vector<Real>& log_weights = {},
                Index every = 1);

}  // namespace oracle
