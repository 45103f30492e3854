#pragma once

// How many dimensions a matrix of attention weights has.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>

#include <Eigen/Eigenvalues>
#include <Eigen/Householder>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// The singular values of `a`, descending, to about n eps of the largest. Householder reflections make it bidiagonal;
/// +-s_i are the eigenvalues of the symmetric tridiagonal matrix with 0 on its diagonal and, beside it, both diagonals of
/// the bidiagonal one, interleaved (Golub and Kahan 1965). Eigen's BDCSVD takes five times as long to compile.
template <class S>
Vector<S> singular_values(Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> a) {
  if (a.rows() < a.cols()) a.transposeInPlace();
  const S size = a.cwiseAbs().maxCoeff();
  if (size == 0) return Vector<S>::Zero(a.cols());
  a /= size;
  const Index n = a.cols();
  Vector<S> beside(2 * n - 1);
  Vector<S> workspace(a.rows());
  for (Index i = 0; i < n; ++i) {
    const Index below = a.rows() - i - 1, right = n - i - 1;
    S tau = 0;
    auto column = a.col(i).tail(below + 1);
    column.makeHouseholderInPlace(tau, beside(2 * i));
    a.bottomRightCorner(below + 1, right)
        .applyHouseholderOnTheLeft(column.tail(below), tau, workspace.data());
    if (right == 0) break;
    auto row = a.row(i).tail(right);
    row.makeHouseholderInPlace(tau, beside(2 * i + 1));
    a.bottomRightCorner(below, right)
        .applyHouseholderOnTheRight(row.tail(right - 1).transpose(), tau, workspace.data());
  }
  Eigen::SelfAdjointEigenSolver<Matrix<S>> eigen;
  eigen.computeFromTridiagonal(Vector<S>::Zero(2 * n), beside, Eigen::EigenvaluesOnly);
  return size * eigen.eigenvalues().tail(n).reverse().cwiseMax(S(0));
}

}  // namespace detail

/// Singular values s_1 >= s_2 >= ... of a matrix, and four answers to the question of its rank. Linear attention with m
/// features has the weights D phi(Q) phi(K)^T, D diagonal, so that not causal its rank is at most m; that of softmax
/// attention has no such bound (Su 2021, "infinite-dimensional linear attention"). Causal weights are triangular: they
/// have full rank wherever every sim(q_i, k_i) is not 0, for any similarity.
template <detail::ComputeScalar S>
class SpectrumOf {
 public:
  /// @param weights  (n_q, n_k), any real matrix expression
  /// @throws std::invalid_argument  if it is empty, or an entry is not finite
  /// Cost: O(n_q n_k min(n_q, n_k)), in S.
  template <class Derived>
  explicit SpectrumOf(const Eigen::MatrixBase<Derived>& weights) {
    detail::check_at_least("rows of weights", weights.rows(), 1);
    detail::check_at_least("columns of weights", weights.cols(), 1);
    const Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> dense = weights.template cast<S>();
    if (!dense.allFinite()) detail::fail_argument("weights: got an entry that is not finite");
    values_ = detail::singular_values<S>(dense);
    tolerance_ =
        static_cast<double>((std::max)(dense.rows(), dense.cols())) * std::numeric_limits<S>::epsilon();
  }

  /// (min(n_q, n_k)), descending
  const Vector<S>& values() const { return values_; }

  /// Number of s_i > tolerance s_1: the rank as far as rounding can tell.
  /// @param tolerance  default max(n_q, n_k) eps of S; for weights computed in float, give that of float
  Index numerical_rank() const { return numerical_rank(tolerance_); }
  Index numerical_rank(double tolerance) const {
    return (values_.array() > static_cast<S>(tolerance) * values_(0)).count();
  }

  /// sum_i s_i^2 / s_1^2 = |A|_F^2 / |A|_2^2, 0 for A = 0   (Rudelson and Vershynin 2007)
  double stable_rank() const { return values_(0) > 0 ? (values_ / values_(0)).squaredNorm() : 0; }

  /// exp(-sum_i p_i ln p_i), p_i = s_i / sum s, 0 for A = 0: the effective rank of Roy and Vetterli (2007).
  double entropy_rank() const {
    if (!(values_(0) > 0)) return 0;
    const auto sum = static_cast<double>(values_.sum());
    double entropy = 0;
    for (const S s : values_) {
      if (s > 0) entropy -= s / sum * std::log(s / sum);
    }
    return std::exp(entropy);
  }

  /// The least r with sum_{i <= r} s_i^2 >= share sum_i s_i^2: how many dimensions hold 99 % of the energy.
  /// @throws std::invalid_argument  unless 0 < share <= 1
  Index energy_rank(double share = 0.99) const {
    if (!(share > 0 && share <= 1)) {
      detail::fail_argument("share of the energy: got " + detail::number(share) + ", expected one in (0, 1]");
    }
    if (!(values_(0) > 0)) return 0;
    // What is left out, summed from its small end: share = 1 leaves nothing out.
    const double left_out = (1 - share) * (values_ / values_(0)).squaredNorm();
    double tail = 0;
    Index rank = values_.size();
    while (rank > 1) {
      tail += std::pow(values_(rank - 1) / values_(0), 2);
      if (tail > left_out) break;
      --rank;
    }
    return rank;
  }

 private:
  Vector<S> values_;
  double tolerance_ = 0;
};

/// In double, whatever the weights were computed in.
using Spectrum = SpectrumOf<double>;

}  // namespace phiattn::inline PHIATTN_ABI
