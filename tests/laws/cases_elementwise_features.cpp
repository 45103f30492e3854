// Maps made of a function of one number: generalised attention, DPFP, Hedgehog.

#include <phiattn/feature_maps/dpfp.hpp>
#include <phiattn/feature_maps/elementwise.hpp>
#include <phiattn/feature_maps/hedgehog.hpp>

#include <algorithm>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

namespace {

using oracle::Term;
using oracle::Token;
using Reals = std::vector<Real>;

Real log_relu(Real x) { return x > 0 ? std::log(x) : -oracle::kInfinity; }

/// sum_i exp(a_i + b_i) of log-features that come with absolute errors of eps times `exponent`.
Term sum_of_products(const Reals& a, const Reals& b, Real exponent) {
  Reals terms;
  Real largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    terms.push_back(a[i] + b[i]);
    if (std::isfinite(terms.back())) largest = std::max(largest, std::abs(a[i]) + std::abs(b[i]));
  }
  const Real log = oracle::log_sum_exp(terms);
  return {log, 1, log, exponent + largest};
}

/// w_i . x + b_i
Reals layer(const oracle::Matrix& w, const oracle::Matrix& b, const Token& x) {
  Reals y;
  for (Index i = 0; i < w.rows(); ++i) y.push_back(w.row(i).dot(x) + b(i));
  return y;
}

/// f of a layer without bias, f = x^degree where x > 0. Its relative error is unbounded where w_i . x is near 0, but
/// that of the sum is within eps sum_i (|w_i| |q| |w_i| |k|)^degree.
oracle::Similarity relu_power(const oracle::Matrix& w, Real degree) {
  return {[=](const Token& q, const Token& k) -> Term {
            const oracle::Matrix none = oracle::Matrix::Zero(w.rows(), 1);
            Reals a, b, bounds;
            for (const Real x : layer(w, none, q)) a.push_back(degree * log_relu(x));
            for (const Real x : layer(w, none, k)) b.push_back(degree * log_relu(x));
            for (Index i = 0; i < w.rows(); ++i) {
              bounds.push_back(degree *
                               (2 * std::log(w.row(i).norm()) + std::log(q.norm()) + std::log(k.norm())));
            }
            Term term = sum_of_products(a, b, 0);
            if (term.log != -oracle::kInfinity) term.log_bound = oracle::log_sum_exp(bounds);
            return term;
          },
          false};
}

/// f of x itself, given by ln f.
oracle::Similarity elementwise(Real (*log_f)(Real)) {
  return {[=](const Token& q, const Token& k) -> Term {
            Reals a, b;
            for (const Real x : q) a.push_back(log_f(x));
            for (const Real x : k) b.push_back(log_f(x));
            return sum_of_products(a, b, 0);
          },
          false};
}

/// sum_i tanh(q_i) tanh(k_i)
oracle::Similarity tanh_products() {
  return {[](const Token& q, const Token& k) -> Term {
            Real sum = 0, bound = 0;
            for (Index i = 0; i < q.size(); ++i) {
              sum += std::tanh(q(i)) * std::tanh(k(i));
              bound += std::abs(std::tanh(q(i)) * std::tanh(k(i)));
            }
            return {std::log(std::abs(sum)), sum < 0 ? Real(-1) : Real(1), std::log(bound), 0};
          },
          false};
}

/// sum over j = 1 ... nu and i of r_i(q) r_{i-j}(q) r_i(k) r_{i-j}(k)
oracle::Similarity dpfp(Index nu) {
  return {[nu](const Token& q, const Token& k) -> Term {
            const auto features = [nu](const Token& x) {
              const Index d = x.size();
              const auto log_r = [&](Index i) { return i < d ? log_relu(x(i)) : log_relu(-x(i - d)); };
              Reals all;
              for (Index j = 1; j <= nu; ++j) {
                for (Index i = 0; i < 2 * d; ++i)
                  all.push_back(log_r(i) + log_r(i >= j ? i - j : i - j + 2 * d));
              }
              return all;
            };
            return sum_of_products(features(q), features(k), 0);
          },
          false};
}

/// @param normalised  each half divided by its sum
oracle::Similarity hedgehog(const oracle::Matrix& w, const oracle::Matrix& b, bool normalised) {
  return {[=](const Token& q, const Token& k) -> Term {
            const auto features = [&](const Token& x) {
              Reals all;
              for (const Real sign : {Real(1), Real(-1)}) {
                Reals half = layer(w, b, x);
                for (Real& y : half) y *= sign;
                const Real log_sum = normalised ? oracle::log_sum_exp(half) : Real(0);
                for (const Real y : half) all.push_back(y - log_sum);
              }
              return all;
            };
            const Real products = w.rowwise().norm().maxCoeff() * (q.norm() + k.norm());
            return sum_of_products(features(q), features(k), 2 * products + 2 * b.cwiseAbs().maxCoeff());
          },
          false};
}

}  // namespace

template <class S>
std::vector<Case<S>> elementwise_features() {
  const auto w = [](Index d) { return gaussian<S>(32, d, kSeed); };
  const auto exact_w = [=](Index d) -> oracle::Matrix { return w(d).template cast<Real>(); };
  const Matrix<S> b = gaussian<S>(1, 32, kSeed + 1);
  const oracle::Matrix exact_b = b.template cast<Real>();
  const auto log_softplus = [](Real x) {
    return x < -100 ? x : std::log(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
  };
  const auto log_sigmoid = [](Real x) { return std::min(x, Real(0)) - std::log1p(std::exp(-std::abs(x))); };
  const auto nu = [](Index d) { return std::min<Index>(3, 2 * d - 1); };
  const auto identity = [](Index d) -> oracle::Matrix { return oracle::Matrix::Identity(d, d); };
  const auto no_bias = [](Index d) -> oracle::Matrix { return oracle::Matrix::Zero(1, d); };
  return {
      case_of(
          "relu random features", true, [=](Index d) { return phiattn::relu_features<S>(w(d)); },
          [=](Index d) { return relu_power(exact_w(d), 1); }),
      case_of(
          "squared relu random features", true,
          [=](Index d) { return phiattn::squared_relu_features<S>(w(d)); },
          [=](Index d) { return relu_power(exact_w(d), 2); }),
      case_of(
          "softplus features", true, [](Index d) { return phiattn::softplus_features<S>(d); },
          [=](Index) { return elementwise(log_softplus); }),
      case_of(
          "sigmoid features", true, [](Index d) { return phiattn::sigmoid_features<S>(d); },
          [=](Index) { return elementwise(log_sigmoid); }),
      case_of(
          "tanh features", false,
          [](Index d) {
            return phiattn::signed_elementwise_features<S>(d, [](S x) { return std::tanh(x); });
          },
          [](Index) { return tanh_products(); }),
      case_of(
          "DPFP features", true, [=](Index d) { return phiattn::DpfpFeatures<S>(d, nu(d)); },
          [=](Index d) { return dpfp(nu(d)); }),
      case_of(
          "Hedgehog features", true,
          [=](Index d) {
            return phiattn::HedgehogFeatures<S>({w(d), b});
          },
          [=](Index d) { return hedgehog(exact_w(d), exact_b, false); }),
      case_of(
          "normalised Hedgehog features", true,
          [](Index d) { return phiattn::HedgehogFeatures<S>(d, phiattn::HedgehogNormalisation::softmax); },
          [=](Index d) { return hedgehog(identity(d), no_bias(d), true); })};
}

template std::vector<Case<float>> elementwise_features();
template std::vector<Case<double>> elementwise_features();

}  // namespace laws
