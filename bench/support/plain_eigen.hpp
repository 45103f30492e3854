#pragma once

// The same operators as one writes them with Eigen at hand and an afternoon.

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
Matrix<S> contract(const Matrix<S>& query, const Matrix<S>& key, const Matrix<S>& v, bool causal) {
  if (!causal) {
    const Matrix<S> sums = key.transpose() * v;
    const Vector<S> normaliser = query * key.colwise().sum().transpose();
    return normaliser.cwiseInverse().asDiagonal() * (query * sums);
  }
  Matrix<S> out(query.rows(), v.cols());
  Matrix<S> sums = Matrix<S>::Zero(key.cols(), v.cols());
  RowVector<S> normaliser = RowVector<S>::Zero(key.cols());
  for (Index t = 0; t < query.rows(); ++t) {
    sums.noalias() += key.row(t).transpose() * v.row(t);
    normaliser += key.row(t);
    out.row(t).noalias() = query.row(t) * sums;
    out.row(t) /= query.row(t).dot(normaliser);
  }
  return out;
}

template <class S>
Matrix<S> favor(const Matrix<S>& omega, const Matrix<S>& q, const Matrix<S>& k, const Matrix<S>& v,
                bool causal) {
  return contract<S>(favor_features(q, omega), favor_features(k, omega), v, causal);
}

/// The same one token at a time.
template <class S>
struct FavorState {
  Matrix<S> omega;
  Matrix<S> sums;
  RowVector<S> normaliser;

  FavorState(const Matrix<S>& frequencies, Index dv)
      : omega(frequencies),
        sums(Matrix<S>::Zero(omega.rows(), dv)),
        normaliser(RowVector<S>::Zero(omega.rows())) {}

  void advance(const Matrix<S>& q, const Matrix<S>& k, const Matrix<S>& v, Matrix<S>& out) {
    const Matrix<S> query = favor_features(q, omega);
    const Matrix<S> key = favor_features(k, omega);
    sums.noalias() += key.transpose() * v;
    normaliser += key;
    out.noalias() = query * sums;
    out /= query.row(0).dot(normaliser);
  }
};

/// elu(x) + 1
template <class S>
Matrix<S> elu_features(const Matrix<S>& x) {
  return (x.array() > S(0)).select(x.array() + S(1), x.array().min(S(0)).exp());
}

/// Linear attention with elu(x) + 1, causal token by token.
template <class S>
Matrix<S> elu(const Matrix<S>& q, const Matrix<S>& k, const Matrix<S>& v, bool causal) {
  return contract<S>(elu_features(q), elu_features(k), v, causal);
}

}  // namespace bench::plain
