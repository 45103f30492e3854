#pragma once

// Exact weights and those of polynomials, compiled once.

#include "lab.hpp"

namespace figures {

Matrix<double> softmax_weights(const Matrix<double>& q, const Matrix<double>& k, bool causal);

/// Row L1 error of the Taylor polynomial or of the exponential limit of a degree.
double degree_error(bool taylor, Index degree, const Matrix<double>& q, const Matrix<double>& k, bool causal,
                    const Matrix<double>& exact);

}  // namespace figures
