#include <phiattn/feature_maps/random_maclaurin.hpp>
#include <phiattn/feature_maps/tensor_sketch.hpp>

#include <algorithm>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

namespace {

using phiattn::TensorPower;

constexpr Index kDegree = 3;
constexpr Index kSketched = 16;  // features beside the exact ones

/// 1, 1/2!, 1/3!, or 1, 1, 1/3, 1/27
Real coefficient(TensorPower family, Index j) {
  const Real taylor[] = {1, 1, 1 / Real(2), 1 / Real(6)};
  const Real limit[] = {1, 1, 1 / Real(3), 1 / Real(27)};
  return (family == TensorPower::taylor ? taylor : limit)[j];
}

/// 1 + q . k + phi(q) . phi(k), where every product of |phi| is at most the feature's bound(|q|_1 |k|_1).
template <class Features, class Bound>
oracle::Similarity sketched(const Features& features, const Bound& bound) {
  return {
      [=](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
        const Real sum = 1 + q.dot(k) + features(q).dot(features(k));
        const Real largest =
            1 + q.cwiseAbs().dot(k.cwiseAbs()) + bound(q.cwiseAbs().sum() * k.cwiseAbs().sum());
        const Real scales = std::log(std::max(Real(1), q.norm())) + std::log(std::max(Real(1), k.norm()));
        return {std::log(std::abs(sum)), sum < 0 ? Real(-1) : Real(1), std::log(largest), kDegree * scales};
      },
      true};
}

/// The count sketches of each degree, convolved bucket by bucket.
template <class S>
oracle::Similarity tensor_sketch(const phiattn::TensorSketchFeatures<S>& map, TensorPower family) {
  const auto features = [=](const oracle::Token& x) {
    oracle::Vector phi(kSketched);
    Index start = 0;
    for (Index j = 2; j <= kDegree; ++j) {
      const Index m = map.buckets(j);
      oracle::Vector sketch = oracle::Vector::Unit(m, 0);
      for (const auto& count : map.count_sketches(j)) {
        oracle::Vector next = oracle::Vector::Zero(m);
        for (Index i = 0; i < x.size(); ++i) {
          const auto at = static_cast<std::size_t>(i);
          for (Index b = 0; b < m; ++b) {
            next((b + count.buckets[at]) % m) += static_cast<Real>(count.signs[at]) * x(i) * sketch(b);
          }
        }
        sketch = next;
      }
      phi.segment(start, m) = std::sqrt(coefficient(family, j)) * sketch;
      start += m;
    }
    return phi;
  };
  // All m Fourier coefficients are at most |x|_1^j.
  return sketched(
      features, [=](Real x) { return coefficient(family, 2) * x * x + coefficient(family, 3) * x * x * x; });
}

/// sqrt(c_N / (p_N M)) prod_l sigma_l . x, feature by feature.
template <class S>
oracle::Similarity maclaurin(const phiattn::RandomMaclaurinFeatures<S>& map, TensorPower family) {
  std::vector<Real> weights;
  for (const Index degree : map.degrees()) {
    const Real probability = degree == 2 ? 2 / Real(3) : 1 / Real(3);
    weights.push_back(coefficient(family, degree) / probability / kSketched);
  }
  const auto features = [=](const oracle::Token& x) {
    oracle::Vector phi(kSketched);
    for (Index r = 0; r < kSketched; ++r) {
      const auto at = static_cast<std::size_t>(r);
      phi(r) = std::sqrt(weights[at]);
      for (Index l = 1; l <= map.degrees()[at]; ++l)
        phi(r) *= x.dot(map.signs(l).col(r).template cast<Real>());
    }
    return phi;
  };
  return sketched(features, [=](Real x) {
    Real sum = 0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      sum += weights[r] * std::pow(x, static_cast<Real>(map.degrees()[r]));
    }
    return sum;
  });
}

}  // namespace

template <class S>
std::vector<Case<S>> sketches() {
  std::vector<Case<S>> cases;
  for (const auto family : {TensorPower::taylor, TensorPower::exponential_limit}) {
    const std::string name =
        family == TensorPower::taylor ? " of the Taylor polynomial" : " of the exponential limit";
    const auto hashed = [=](Index d) {
      return phiattn::TensorSketchFeatures<S>(family, d, kDegree, 1 + d + kSketched, kSeed);
    };
    const auto signs = [=](Index d) {
      return phiattn::RandomMaclaurinFeatures<S>(family, d, kDegree, 1 + d + kSketched, kSeed);
    };
    cases.push_back(case_of("tensor sketch" + name, false, hashed,
                            [=](Index d) { return tensor_sketch<S>(hashed(d), family); }));
    cases.push_back(case_of("random Maclaurin features" + name, false, signs,
                            [=](Index d) { return maclaurin<S>(signs(d), family); }));
  }
  return cases;
}

template std::vector<Case<float>> sketches();
template std::vector<Case<double>> sketches();

}  // namespace laws
