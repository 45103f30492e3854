// Eigen's solver for symmetric matrices: it takes seconds to compile, so that is done once, in eigen_solver.cpp, for all
// tests that include this.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <Eigen/Eigenvalues>

using SymmetricSolver = Eigen::SelfAdjointEigenSolver<phiattn::Matrix<double>>;

extern template SymmetricSolver& SymmetricSolver::compute(const Eigen::EigenBase<phiattn::Matrix<double>>&,
                                                          int);
