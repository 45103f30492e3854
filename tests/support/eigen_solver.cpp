#include "support/eigen_solver.hpp"

template SymmetricSolver& SymmetricSolver::compute(const Eigen::EigenBase<phiattn::Matrix<double>>&, int);
