#include "support/oracle.hpp"

#include <algorithm>
#include <utility>

namespace oracle {

Real log_sum_exp(const std::vector<Real>& x) {
  const Real shift = x.empty() ? -kInfinity : *std::max_element(x.begin(), x.end());
  if (shift == -kInfinity) return shift;
  Real sum = 0;
  for (const Real term : x) sum += std::exp(term - shift);
  return shift + std::log(sum);
}

Similarity exponential() {
  return {[](const Token& q, const Token& k) -> Term {
            const Real score = q.dot(k);
            return {score, 1, score, q.norm() * k.norm()};
          },
          true};
}

namespace {

/// sum_m c_m x^m for x = q . k; each power is kept below 1 by s = max(1, |x|).
Similarity power_series(std::vector<Real> coefficients) {
  const auto log_and_sign = [coefficients](Real x) {
    const Real s = std::max(Real(1), std::abs(x));
    const auto degree = static_cast<Real>(coefficients.size() - 1);
    Real sum = 0;
    for (std::size_t m = 0; m < coefficients.size(); ++m) {
      sum += coefficients[m] * std::pow(x / s, static_cast<Real>(m)) *
             std::pow(s, static_cast<Real>(m) - degree);
    }
    return std::pair(degree * std::log(s) + std::log(std::abs(sum)), sum < 0 ? Real(-1) : Real(1));
  };
  return {[log_and_sign](const Token& q, const Token& k) -> Term {
            const auto [log, sign] = log_and_sign(q.dot(k));
            return {log, sign, log_and_sign(q.norm() * k.norm()).first, 0};
          },
          true};
}

}  // namespace

Similarity taylor(Index n) {
  std::vector<Real> coefficients{1};
  for (Index m = 1; m <= n; ++m) coefficients.push_back(coefficients.back() / static_cast<Real>(m));
  return power_series(coefficients);
}

Similarity exponential_limit(Index n) {
  std::vector<Real> coefficients{1};
  for (Index m = 1; m <= n; ++m) {
    coefficients.push_back(coefficients.back() * static_cast<Real>(n - m + 1) / static_cast<Real>(m * n));
  }
  return power_series(coefficients);
}

Similarity elu() {
  return {[](const Token& q, const Token& k) -> Term {
            const auto log_phi = [](Real x) { return x > 0 ? std::log1p(x) : x; };
            std::vector<Real> terms;
            Real exponent = 0;
            for (Index i = 0; i < q.size(); ++i) {
              const Real a = log_phi(q(i));
              const Real b = log_phi(k(i));
              terms.push_back(a + b);
              exponent = std::max(exponent, std::abs(a) + std::abs(b));
            }
            const Real log = log_sum_exp(terms);
            return {log, 1, log, exponent};
          },
          false};
}

Similarity random_features(const Matrix& omega, Vector log_weights) {
  if (log_weights.size() == 0) log_weights.setZero(omega.rows());
  return {[=](const Token& q, const Token& k) -> Term {
            const Real squares = (q.squaredNorm() + k.squaredNorm()) / 2;
            std::vector<Real> terms;
            Real longest = 0;
            for (Index i = 0; i < omega.rows(); ++i) {
              terms.push_back(log_weights(i) + omega.row(i).dot(q) + omega.row(i).dot(k));
              longest = std::max(longest, omega.row(i).norm());
            }
            const Real log = log_sum_exp(terms) - squares - std::log(static_cast<Real>(omega.rows()));
            const Real heaviest = log_weights.cwiseAbs().maxCoeff();
            return {log, 1, log, squares + longest * (q.norm() + k.norm()) + heaviest};
          },
          true};
}

bool sees(const phiattn::AttentionOptions& options, Index n_q, Index n_k, Index i, Index j) {
  if (options.causality == phiattn::Causality::none) return true;
  const auto offset = static_cast<Real>(options.query_offset.value_or(n_k - n_q));  // i + offset may overflow
  return static_cast<Real>(j) <= static_cast<Real>(i) + offset;
}

Sees sees(const phiattn::AttentionOptions& options, Index n_q, Index n_k) {
  return [=](Index i, Index j) { return sees(options, n_q, n_k, i, j); };
}

Expected attend(const Similarity& similarity, const Matrix& q, const Matrix& k, const Matrix& v,
                const phiattn::AttentionOptions& options, const Sees& sees,
                const std::vector<Real>& log_weights, Index every) {
  const Index n_q = q.rows();
  const Index n_k = k.rows();
  const Real root_scale =
      std::sqrt(options.scale ? static_cast<Real>(*options.scale) : similarity.default_scale(q.cols()));
  const Matrix scaled_q = root_scale * q;
  const Matrix scaled_k = root_scale * k;
  const Real operations = 4 + std::sqrt(static_cast<Real>(q.cols() + n_k));

  Expected expected{{},
                    Matrix::Zero(n_q, v.cols()),
                    Matrix::Zero(n_q, n_k),
                    Vector::Constant(n_q, -kInfinity),
                    Vector::Ones(n_q),
                    Vector::Ones(n_q),
                    v.size() > 0 ? v.cwiseAbs().maxCoeff() : Real(0)};
  for (Index i = 0; i < n_q; ++i) {
    if (i % every != 0 && i != n_q - 1) continue;
    expected.rows.push_back(i);
    std::vector<Term> terms;
    std::vector<Index> keys;
    Real shift = -kInfinity;
    Real exponent = 0;
    for (Index j = 0; j < n_k; ++j) {
      const Real weight = log_weights.empty() ? Real(0) : log_weights[static_cast<std::size_t>(j)];
      if (weight == -kInfinity || !sees(i, j)) continue;
      Term term = similarity.pair(scaled_q.row(i), scaled_k.row(j));
      term.log += weight;
      term.log_bound += weight;
      shift = std::max(shift, term.log_bound);
      exponent = std::max(exponent, term.exponent + std::abs(weight));
      terms.push_back(term);
      keys.push_back(j);
    }
    if (shift == -kInfinity) continue;  // no key, or none that has anything in common with the query

    Real sum = 0;
    Real bound = 0;
    for (const Term& term : terms) {
      sum += term.sign * std::exp(term.log - shift);
      bound += std::exp(term.log_bound - shift);
    }
    for (std::size_t p = 0; p < terms.size(); ++p) {
      const Real weight = terms[p].sign * std::exp(terms[p].log - shift) / sum;
      expected.weights(i, keys[p]) = weight;
      for (Index c = 0; c < v.cols(); ++c) expected.out(i, c) += weight * v(keys[p], c);
    }
    expected.log_normaliser(i) = shift + std::log(std::abs(sum));
    expected.sign(i) = sum < 0 ? Real(-1) : Real(1);
    exponent += std::abs(expected.log_normaliser(i));
    expected.condition(i) = operations * (1 + exponent) * bound / std::abs(sum);
  }
  return expected;
}

Expected attend(const Similarity& similarity, const Matrix& q, const Matrix& k, const Matrix& v,
                const phiattn::AttentionOptions& options, const std::vector<Real>& log_weights, Index every) {
  return attend(similarity, q, k, v, options, sees(options, q.rows(), k.rows()), log_weights, every);
}

}  // namespace oracle
