#pragma once

// Included by core/symmetric_function.hpp where that is not compiled elsewhere.

#include <phiattn/core/symmetric_function.hpp>

#include <Eigen/Eigenvalues>

namespace phiattn::inline PHIATTN_ABI::detail {

template <std::same_as<double> S>
Matrix<S> symmetric_function(const Matrix<S>& x, const std::function<void(Vector<S>& eigenvalues)>& f) {
  const Eigen::SelfAdjointEigenSolver<Matrix<S>> eigen(x);
  Vector<S> values = eigen.eigenvalues();
  f(values);
  return eigen.eigenvectors() * values.asDiagonal() * eigen.eigenvectors().transpose();
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
