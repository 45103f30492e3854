#pragma once

// The same operators as one writes them with Eigen at hand and an afternoon. Next: bench/attention_bench.cpp.

#include <phiattn/core/matrix.hpp>

#include <cmath>
#include <limits>

namespace bench::plain {

using phiattn::Index;
using phiattn::Matrix;
using phiattn::RowVector;
using phiattn::Vector;

/// softmax(Q K' scale) V
template <class S>
Matrix<S> softmax(const Matrix<S>& q, const Matrix<S>& k, const Matrix<S>& v, bool causal) {
  const S scale = 1 / std::sqrt(static_cast<S>(q.cols()));
  Matrix<S> weights = q * k.transpose() * scale;
  if (causal) {
    weights.template triangularView<Eigen::StrictlyUpper>().setConstant(-std::numeric_limits<S>::infinity());
  }
  for (Index i = 0; i < weights.rows(); ++i) {
    weights.row(i) = (weights.row(i).array() - weights.row(i).maxCoeff()).exp();
    weights.row(i) /= weights.row(i).sum();
  }
  return weights * v;
}

/// exp(X omega' - |x|^2/2) with X scaled by d^{-1/4}
template <class S>
Matrix<S> favor_features(const Matrix<S>& x, const Matrix<S>& omega) {
  const Matrix<S> scaled = x * std::pow(static_cast<S>(x.cols()), S(-0.25));
  Matrix<S> features = scaled * omega.transpose();
  for (Index t = 0; t < x.rows(); ++t) {
    features.row(t) = (features.row(t).array() - scaled.row(t).squaredNorm() / 2).exp();
  }
  return features;
}

/// Q' (K'^T V), normalised; causal token by token.
template <class S>
Matrix<S> favor(const Matrix<S>& omega, const Matrix<S>& q, const Matrix<S>& k, const Matrix<S>& v,
                bool causal) {
  const Matrix<S> query = favor_features(q, omega);
  const Matrix<S> key = favor_features(k, omega);
  if (!causal) {
    const Matrix<S> sums = key.transpose() * v;
    const Vector<S> normaliser = query * key.colwise().sum().transpose();
    return normaliser.cwiseInverse().asDiagonal() * (query * sums);
  }
  Matrix<S> out(q.rows(), v.cols());
  Matrix<S> sums = Matrix<S>::Zero(omega.rows(), v.cols());
  RowVector<S> normaliser = RowVector<S>::Zero(omega.rows());
  for (Index t = 0; t < q.rows(); ++t) {
    sums.noalias() += key.row(t).transpose() * v.row(t);
    normaliser += key.row(t);
    out.row(t).noalias() = query.row(t) * sums;
    out.row(t) /= query.row(t).dot(normaliser);
  }
  return out;
}

}  // namespace bench::plain
