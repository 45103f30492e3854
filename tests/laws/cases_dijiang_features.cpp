#include <phiattn/feature_maps/dijiang.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

namespace {

/// sum_i exp(omega_i . q) exp(omega_i . k) / (sum_i exp(omega_i . q) sum_i exp(omega_i . k))
oracle::Similarity products_of_softmax(const oracle::Matrix& omega) {
  return {[omega](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
            std::vector<Real> a, b, both;
            Real longest = 0;
            for (Index i = 0; i < omega.rows(); ++i) {
              a.push_back(omega.row(i).dot(q));
              b.push_back(omega.row(i).dot(k));
              both.push_back(a.back() + b.back());
              longest = std::max(longest, omega.row(i).norm());
            }
            const Real log = oracle::log_sum_exp(both) - oracle::log_sum_exp(a) - oracle::log_sum_exp(b);
            return {log, 1, log, 2 * longest * (q.norm() + k.norm())};
          },
          true};
}

}  // namespace

/// Twice as many features as dimensions.
template <class S>
std::vector<Case<S>> dijiang_features() {
  const auto projection = [](Index d) { return phiattn::sample_dijiang_projection<S>(2 * d, d, kSeed); };
  return {case_of(
      "DiJiang features", true,
      [=](Index d) {
        return phiattn::DiJiangFeatures<S>(projection(d), phiattn::DiJiangNormalisation::softmax);
      },
      [=](Index d) { return products_of_softmax(projection(d).matrix().template cast<Real>()); })};
}

template std::vector<Case<float>> dijiang_features();
template std::vector<Case<double>> dijiang_features();

}  // namespace laws
