#include <phiattn/feature_maps/nystrom.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>

#include "support/case_of.hpp"

namespace laws {

namespace {

using oracle::Real;
using oracle::Term;
using oracle::Token;

constexpr double kJitter = 1e-3;

/// Two landmarks at +-0.6 u, u the unit vector along (1, ..., 1), between which weights of the far side are negative,
/// and one across, far from both.
Matrix<double> landmarks(Index d) {
  Matrix<double> rows = Matrix<double>::Zero(d > 1 ? 3 : 2, d);
  rows.row(0).setConstant(0.6 / std::sqrt(static_cast<double>(d)));
  rows.row(1) = -rows.row(0);
  if (d > 1) rows.row(2).head(2) << 4, -4;
  return rows;
}

/// The inverse of a symmetric positive definite matrix, by Gauss and Jordan.
oracle::Matrix inverse(oracle::Matrix a) {
  oracle::Matrix result = oracle::Matrix::Identity(a.rows(), a.rows());
  for (Index p = 0; p < a.rows(); ++p) {
    const Real pivot = a(p, p);
    a.row(p) /= pivot;
    result.row(p) /= pivot;
    for (Index i = 0; i < a.rows(); ++i) {
      if (i == p) continue;
      const Real factor = a(i, p);
      a.row(i) -= factor * a.row(p);
      result.row(i) -= factor * result.row(p);
    }
  }
  return result;
}

/// sim(q, L) (sim(L, L) + jitter diag sim(L, L))^{-1} sim(L, k), for sim = exp(x . y - c (|x|^2 + |y|^2) / 2): the
/// Gaussian kernel of sigma 1 with c = 1, exp(q . k) with c = 0.
oracle::Similarity nystrom(const oracle::Matrix& l, Real c) {
  const auto log_a = [=](const Token& x, Index i) {
    return x.dot(l.row(i)) - c * x.squaredNorm() / 2 - l.row(i).squaredNorm() / 2;
  };
  oracle::Matrix correlation(l.rows(), l.rows());
  for (Index i = 0; i < l.rows(); ++i) {
    for (Index j = 0; j < l.rows(); ++j) {
      correlation(i, j) = std::exp(-(l.row(i) - l.row(j)).squaredNorm() / 2);
    }
  }
  correlation.diagonal().array() += static_cast<Real>(kJitter);
  const oracle::Matrix inverted = inverse(correlation);
  return {[=](const Token& q, const Token& k) -> Term {
            const Index m = l.rows();
            oracle::Vector a(m), b(m);
            for (Index i = 0; i < m; ++i) {
              a(i) = log_a(q, i);
              b(i) = log_a(k, i);
            }
            const Real shift = a.maxCoeff() + b.maxCoeff();
            a = (a.array() - a.maxCoeff()).exp();
            b = (b.array() - b.maxCoeff()).exp();
            const Real sum = a.dot(inverted * b);
            const Real longest = l.rowwise().norm().maxCoeff();
            const Real exponent =
                (q.norm() + longest) * (q.norm() + longest) + (k.norm() + longest) * (k.norm() + longest);
            return {std::log(std::abs(sum)) + shift, sum < 0 ? Real(-1) : Real(1),
                    std::log(a.norm() * inverted.norm() * b.norm()) + shift, exponent};
          },
          c == 0};
}

}  // namespace

template <class S>
std::vector<Case<S>> nystrom_features() {
  const auto scaled = [](Index d) -> oracle::Matrix {
    return landmarks(d).template cast<Real>() / std::sqrt(std::sqrt(static_cast<Real>(d)));
  };
  const phiattn::NystromOptions options{.jitter = kJitter};
  return {case_of(
              "Nystrom features, Gaussian", false,
              [=](Index d) {
                return phiattn::NystromFeatures(phiattn::GaussianKernel<S>(1), landmarks(d), options);
              },
              [](Index d) { return nystrom(landmarks(d).template cast<Real>(), 1); }),
          case_of(
              "Nystrom features, exponential", false,
              [=](Index d) {
                return phiattn::NystromFeatures(phiattn::ExponentialKernel<S>(), landmarks(d), options);
              },
              [=](Index d) { return nystrom(scaled(d), 0); })};
}

template std::vector<Case<float>> nystrom_features();
template std::vector<Case<double>> nystrom_features();

}  // namespace laws
