#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/kernels/pairwise.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include "support/case_of.hpp"

namespace laws {

namespace {

using oracle::Real;
using oracle::Term;
using oracle::Token;

/// exp(-|q - k|^2 / (2 sigma^2))
oracle::Similarity gaussian_kernel(Real sigma) {
  return {[sigma](const Token& q, const Token& k) -> Term {
            const Real log = -(q - k).squaredNorm() / (2 * sigma * sigma);
            return {log, 1, log, (q.norm() + k.norm()) * (q.norm() + k.norm()) / (2 * sigma * sigma)};
          },
          false};
}

/// exp(tau cos(q, k)), the cosine with 0 being 0
oracle::Similarity cosine_kernel(Real tau) {
  return {[tau](const Token& q, const Token& k) -> Term {
            const Real norms = q.norm() * k.norm();
            const Real log = norms == 0 ? Real(0) : tau * q.dot(k) / norms;
            return {log, 1, log, tau};
          },
          false};
}

}  // namespace

template <class S>
std::vector<Case<S>> kernels() {
  const auto taylor = [](Index n) {
    return case_of(
        "Taylor kernel " + std::to_string(n), n % 2 == 0,
        [n](Index) { return phiattn::PolynomialKernel<S>::taylor(n); },
        [n](Index) { return oracle::taylor(n); });
  };
  return {case_of(
              "exponential kernel", true, [](Index) { return phiattn::ExponentialKernel<S>(); },
              [](Index) { return oracle::exponential(); }),
          taylor(0),
          taylor(1),
          taylor(2),
          taylor(3),
          case_of(
              "exponential limit kernel 4", true,
              [](Index) { return phiattn::PolynomialKernel<S>::exponential_limit(4); },
              [](Index) { return oracle::exponential_limit(4); })};
}

template <class S>
std::vector<Case<S>> distance_kernels() {
  const auto product = [](const auto& q, const auto& k) { return q.dot(k); };
  const auto one_plus_product = [](const auto& q, const auto& k) { return 1 + q.dot(k); };
  return {case_of(
              "Gaussian kernel", true, [](Index) { return phiattn::GaussianKernel<S>(2); },
              [](Index) { return gaussian_kernel(2); }),
          case_of(
              "cosine kernel", true, [](Index) { return phiattn::CosineKernel<S>(5); },
              [](Index) { return cosine_kernel(5); }),
          case_of(
              "pairwise exponential kernel", true, [=](Index) { return phiattn::log_kernel<S>(product); },
              [](Index) {
                return oracle::Similarity{oracle::exponential().pair, false};
              }),
          case_of(
              "pairwise 1 + q . k", false, [=](Index) { return phiattn::signed_kernel<S>(one_plus_product); },
              [](Index) {
                return oracle::Similarity{oracle::taylor(1).pair, false};
              })};
}

template std::vector<Case<float>> kernels();
template std::vector<Case<double>> kernels();
template std::vector<Case<float>> distance_kernels();
template std::vector<Case<double>> distance_kernels();

}  // namespace laws
