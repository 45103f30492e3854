#pragma once

// How far an approximation is from the exact result, and how far uniform attention would be.

#include <phiattn/attention/attention.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/kernels/polynomial.hpp>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

template <class A, class B>
void check_same_shape(const Eigen::DenseBase<A>& approximate, const Eigen::DenseBase<B>& exact) {
  check_equal("rows of the approximation", approximate.rows(), "rows of the exact result", exact.rows());
  check_equal("columns of the approximation", approximate.cols(), "columns of the exact result",
              exact.cols());
}

}  // namespace detail

/// |approximate - exact|_F / |exact|_F, summed in double; 0/0 is 0.
template <class A, class B>
double relative_frobenius_error(const Eigen::MatrixBase<A>& approximate, const Eigen::MatrixBase<B>& exact) {
  detail::check_same_shape(approximate, exact);
  const Matrix<double> reference = exact.template cast<double>();
  const double difference = (approximate.template cast<double>() - reference).norm();
  return difference == 0 ? 0 : difference / reference.norm();
}

/// max |approximate_ij - exact_ij|; NaN if any entry is.
template <class A, class B>
double maximal_error(const Eigen::MatrixBase<A>& approximate, const Eigen::MatrixBase<B>& exact) {
  detail::check_same_shape(approximate, exact);
  if (exact.size() == 0) return 0;
  return detail::largest((approximate.template cast<double>() - exact.template cast<double>()).cwiseAbs());
}

/// mean_i sum_j |approximate_ij - exact_ij| of two weight matrices; between 0 and 2 where all weights are positive.
template <class A, class B>
double row_l1_error(const Eigen::MatrixBase<A>& approximate, const Eigen::MatrixBase<B>& exact) {
  detail::check_same_shape(approximate, exact);
  if (exact.rows() == 0) return 0;
  return (approximate.template cast<double>() - exact.template cast<double>()).cwiseAbs().sum() /
         static_cast<double>(exact.rows());
}

/// Attention with every weight equal, the mean of the values in sight: the least that an approximation must beat.
template <detail::ComputeScalar S>
PolynomialKernel<S> uniform_kernel() {
  return PolynomialKernel<S>::taylor(0);
}

}  // namespace phiattn::inline PHIATTN_ABI
