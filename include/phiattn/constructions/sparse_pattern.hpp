#pragma once

// Inputs on which a fixed attention module has a given sparse pattern.
//
// X = [X1 | X2] is (L, 2d), W_Q = [I; 0] and W_K = [0; I], (2d, d), and the weights are softmax(X W_Q W_K^T X^T) without
// a scale (Likhosherstov, Choromanski and Weller 2021, "On the expressive power of self-attention matrices"). A target
// A (L, L), nonnegative and with a nonzero in each row, enters by the places S_i of the nonzeros of each row and their
// ratios; rows need not sum to 1. Randomness comes in as a matrix G (L, d), of gaussian_rows() as a rule.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/random.hpp>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// What the constructions return.
template <detail::ComputeScalar S>
struct SparsePatternOf {
  Matrix<S> queries;  ///< X1 (L, d)
  Matrix<S> keys;     ///< X2 (L, d)

  /// X = [X1 | X2], (L, 2d)
  Matrix<S> inputs() const {
    Matrix<S> x(queries.rows(), queries.cols() + keys.cols());
    x << queries, keys;
    return x;
  }

  /// W_Q and W_K, (2d, d): the same whatever the pattern.
  static Matrix<S> query_weights(Index d) { return Matrix<S>::Identity(2 * d, d); }
  static Matrix<S> key_weights(Index d) { return query_weights(d).colwise().reverse().rowwise().reverse(); }
};

using SparsePattern = SparsePatternOf<double>;

/// How far weights are from a pattern.
struct PatternError {
  double ratio;    ///< max over i and j, l in S_i of |ln(w_ij / w_il) - ln(a_ij / a_il)|
  double leakage;  ///< max over i, j not in S_i and l in S_i of w_ij / w_il; 0 if there is no zero
};

/// (rows, cols) independent standard normals.
template <detail::ComputeScalar S = double>
Matrix<S> gaussian_rows(Index rows, Index cols, std::uint64_t seed) {
  const Philox random(seed);
  Matrix<S> g(rows, cols);
  for (Index i = 0; i < g.size(); ++i)
    g.data()[i] = static_cast<S>(random.normal(static_cast<std::uint64_t>(i)));
  return g;
}

namespace detail {

/// The nonzeros of a row.
template <class S>
struct SparseRow {
  std::vector<Index> columns;
  Vector<S> log_ratios;  // ln(a_ij / min_{l in S_i} a_il)
};

template <class S>
std::vector<SparseRow<S>> sparse_rows(const Input<S>& target) {
  check_equal("columns of the target", target.cols(), "rows of the target", target.rows());
  check_at_least("rows of the target", target.rows(), 1);
  std::vector<SparseRow<S>> rows;
  Matrix<S> row(1, target.cols());
  for (Index i = 0; i < target.rows(); ++i) {
    SparseRow<S>& sparse = rows.emplace_back();
    target.slice(i, 1).load(0, 1, row);
    S least = std::numeric_limits<S>::infinity();
    for (Index j = 0; j < row.cols(); ++j) {
      const S a = row(0, j);
      if (!(a >= 0) || !std::isfinite(a)) {
        fail_argument("target(" + std::to_string(i) + ", " + std::to_string(j) + "): got " +
                      detail::number(a) + ", expected a finite number >= 0");
      }
      if (a > 0) {
        sparse.columns.push_back(j);
        least = (std::min)(least, a);
      }
    }
    const std::string what = std::string("nonzeros of the target's row ").append(std::to_string(i));
    check_at_least(what.c_str(), static_cast<Index>(sparse.columns.size()), 1);
    sparse.log_ratios.resize(static_cast<Index>(sparse.columns.size()));
    for (Index s = 0; const Index j : sparse.columns) sparse.log_ratios(s++) = std::log(row(0, j) / least);
  }
  return rows;
}

/// ln(1/eps1)
inline double log_inverse_leakage(double eps1) {
  if (eps1 > 0 && eps1 < 1) return -std::log(eps1);
  fail_argument("eps1: got " + detail::number(eps1) + ", expected a number in (0, 1)");
}

/// The rows of `keys` at the nonzeros of one row of the target, (k, d).
template <class S>
Matrix<S> keys_of(const SparseRow<S>& row, const Matrix<S>& keys) {
  Matrix<S> picked(static_cast<Index>(row.columns.size()), keys.cols());
  for (Index s = 0; const Index j : row.columns) picked.row(s++) = keys.row(j);
  return picked;
}

template <class S>
Matrix<S> checked_directions(const Input<S>& g, const Input<S>& target) {
  check_equal("rows of G", g.rows(), "rows of the target", target.rows());
  check_at_least("columns of G (d)", g.cols(), 1);
  Matrix<S> rows(g.rows(), g.cols());
  g.load(0, 1, rows);
  return rows;
}

}  // namespace detail

/// The construction of Likhosherstov et al.: X1 = B G / sqrt(d), X2 = G / sqrt(d), with
///
///     B_ij = ln(a_ij / min_{l in S_i} a_il) + ln(1/eps1) + eps2  on S_i,   0 elsewhere,      E[X1 X2^T] = B.
///
/// Proved (there, from the Johnson-Lindenstrauss lemma): in random_projection_dimension() dimensions, with probability
/// 1 - delta, ratios of nonzeros are right up to e^{+-eps2} and leakage is at most eps1.
/// @param g  G (L, d)
/// @throws std::invalid_argument  on a target or G that does not fit, if eps1 is not in (0, 1), or eps2 is negative or
///                                not finite
/// Cost: O(L^2 + k L d) for k nonzeros a row.
template <detail::ComputeScalar S = double, class T>
SparsePatternOf<S> random_projection_pattern(const Eigen::DenseBase<T>& a,
                                             const std::type_identity_t<Input<S>>& g, double eps1,
                                             double eps2) {
  const Input<S> target(a);  // an expression is evaluated once
  const auto least = static_cast<S>(detail::log_inverse_leakage(eps1) + eps2);
  if (!(eps2 >= 0) || !std::isfinite(eps2)) {
    detail::fail_argument("eps2: got " + detail::number(eps2) + ", expected a finite number >= 0");
  }
  SparsePatternOf<S> pattern{{},
                             detail::checked_directions<S>(g, target) / std::sqrt(static_cast<S>(g.cols()))};
  pattern.queries.resize(g.rows(), g.cols());
  for (Index i = 0; const detail::SparseRow<S>& row : detail::sparse_rows<S>(target)) {
    const Vector<S> b = row.log_ratios.array() + least;
    pattern.queries.row(i++) = b.transpose() * detail::keys_of<S>(row, pattern.keys);
  }
  return pattern;
}

/// The least d for which the proof covers random_projection_pattern(),
///
///     d >= ln(4 L^2 / delta) / (eps^2/4 - eps^3/6),   eps = eps2 / (2 sqrt(k) beta),   beta = ln(1/(gamma eps1)) + eps2
///
/// for k nonzeros a row and gamma the smallest ratio of two nonzeros of a row: O(log L), with a large constant.
/// @throws std::invalid_argument  on numbers out of range: L, k >= 1, gamma in (0, 1], eps1 and delta in (0, 1), eps2 > 0
///                                with eps < 3/2, beyond which the formula has no meaning
inline Index random_projection_dimension(Index length, Index nonzeros, double gamma, double eps1, double eps2,
                                         double delta) {
  detail::check_at_least("length L", length, 1);
  detail::check_at_least("nonzeros k", nonzeros, 1);
  if (!(gamma > 0 && gamma <= 1)) {
    detail::fail_argument("gamma: got " + detail::number(gamma) + ", expected a number in (0, 1]");
  }
  if (!(delta > 0 && delta < 1)) {
    detail::fail_argument("delta: got " + detail::number(delta) + ", expected a number in (0, 1)");
  }
  detail::checked_positive("eps2", eps2);
  const double beta = detail::log_inverse_leakage(eps1) - std::log(gamma) + eps2;
  const double eps = eps2 / (2 * std::sqrt(static_cast<double>(nonzeros)) * beta);
  if (!(eps < 1.5)) {
    detail::fail_argument("eps2: got " + detail::number(eps2) + ", too large for the bound");
  }
  const double pairs = 4 * std::pow(static_cast<double>(length), 2) / delta;
  return static_cast<Index>(std::ceil(std::log(pairs) / (eps * eps / 4 - eps * eps * eps / 6)));
}

/// Exact ratios: keys U, the rows of G made unit vectors, and for each row the shortest query that gives its keys U_S
/// the scores b,
///
///     X1_i = U_S^T (U_S U_S^T)^{-1} b,    b_j = ln(a_ij / min_{l in S_i} a_il) + margin ln(1/eps1),    X2 = U.
///
/// Ratios of nonzeros are exact; only leakage is random. Measured, not proved: with Gaussian G, k = 2, eps1 = 0.1 and
/// margin 4, leakage is below eps1 from about d = 14.6 ln L - 14 on (L = 64 to 2048). (The other keys are independent of the query, and
/// a union bound over P(u . x > t |x|) <= exp(-d t^2 / 2) suggests the slope: 4 |x|^2 / ((margin - 1) ln(1/eps1))^2.)
/// @param g  G (L, d), d >= the most nonzeros of a row
/// @throws std::invalid_argument  on a target or G that does not fit, if eps1 is not in (0, 1), margin is not positive
///                                and finite, or keys of one row depend linearly on each other
/// Cost: O(L^2 + L (k^2 d + k^3)).
template <detail::ComputeScalar S = double, class T>
SparsePatternOf<S> exact_ratio_pattern(const Eigen::DenseBase<T>& a, const std::type_identity_t<Input<S>>& g,
                                       double eps1, double margin) {
  const Input<S> target(a);
  const auto least =
      static_cast<S>(detail::checked_positive("margin", margin) * detail::log_inverse_leakage(eps1));
  SparsePatternOf<S> pattern{{}, detail::checked_directions<S>(g, target)};
  pattern.keys.rowwise().normalize();
  pattern.queries.resize(g.rows(), g.cols());
  for (Index i = 0; const detail::SparseRow<S>& row : detail::sparse_rows<S>(target)) {
    const Matrix<S> keys = detail::keys_of<S>(row, pattern.keys);
    const std::string what = std::string("columns of G (d), for row ").append(std::to_string(i));
    detail::check_at_least(what.c_str(), g.cols(), keys.rows());
    const Eigen::LLT<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>> gram(keys * keys.transpose());
    if (gram.info() != Eigen::Success || !(gram.rcond() > std::numeric_limits<S>::epsilon())) {
      detail::fail_argument("rows of G at the nonzeros of the target's row " + std::to_string(i) +
                            ": linearly dependent");
    }
    const Vector<S> b = row.log_ratios.array() + least;
    pattern.queries.row(i++) = gram.solve(b).transpose() * keys;
  }
  return pattern;
}

/// What the weights softmax(queries keys^T) have to do with the target.
/// @throws std::invalid_argument  if the shapes do not fit, or on a bad target
/// Cost: 2 L^2 d flops; O(L) memory beyond the nonzeros.
template <detail::ComputeScalar S = double>
PatternError pattern_error(const SparsePatternOf<S>& pattern, const std::type_identity_t<Input<S>>& target) {
  detail::check_equal("rows of the pattern's queries", pattern.queries.rows(), "rows of the target",
                      target.rows());
  detail::check_equal("rows of the pattern's keys", pattern.keys.rows(), "rows of the target", target.rows());
  detail::check_equal("columns of the pattern's queries", pattern.queries.cols(), "columns of its keys",
                      pattern.keys.cols());
  constexpr Index kChunk = 64;
  const std::vector<detail::SparseRow<S>> rows = detail::sparse_rows<S>(target);
  Matrix<S> scores;
  S ratio = 0;
  S log_leakage = -std::numeric_limits<S>::infinity();
  for (Index i = 0; i < target.rows(); ++i) {
    if (i % kChunk == 0) {
      scores.resize((std::min)(kChunk, target.rows() - i), target.rows());
      detail::multiply_transposed<S>(pattern.queries.middleRows(i, scores.rows()), pattern.keys, scores);
    }
    auto row = scores.row(i % kChunk);
    const detail::SparseRow<S>& sparse = rows[static_cast<std::size_t>(i)];
    Vector<S> at_nonzeros(sparse.log_ratios.size());
    for (Index s = 0; const Index j : sparse.columns) {
      at_nonzeros(s++) = row(j);
      row(j) = -std::numeric_limits<S>::infinity();
    }
    const Vector<S> difference = at_nonzeros - sparse.log_ratios;
    ratio = (std::max)(ratio, difference.maxCoeff() - difference.minCoeff());
    log_leakage = (std::max)(log_leakage, row.maxCoeff() - at_nonzeros.minCoeff());
  }
  return {ratio, std::exp(log_leakage)};
}

}  // namespace phiattn::inline PHIATTN_ABI
