// A few cases for all laws: an exact kernel, a signed one, maps of either kind that are smooth, that have features of 0, or
// log-scales of any size, a window and clusters. What else the laws go through takes minutes to compile, and the same code.

#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/window.hpp>

#include <cmath>
#include <limits>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

using phiattn::ConstMatrixRef;
using phiattn::FeatureBlock;
using phiattn::Side;

template <class S>
std::vector<Case<S>> kernels() {
  return {case_of(
              "exponential kernel", true, [](Index) { return phiattn::ExponentialKernel<S>(); },
              [](Index) { return oracle::exponential(); }),
          case_of(
              "Taylor kernel 1", false, [](Index) { return phiattn::PolynomialKernel<S>::taylor(1); },
              [](Index) { return oracle::taylor(1); })};
}

/// phi(x) = (1, max(0, x))
template <class S>
struct ReluFeatures : phiattn::LogFeatureMapBase<ReluFeatures<S>, S> {
  Index d;
  explicit ReluFeatures(Index dimension) : d(dimension) {}
  Index dimension() const { return d; }
  Index feature_dimension() const { return d + 1; }
  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    block.values.col(0).setZero();
    block.values.rightCols(d) =
        x.unaryExpr([](S y) { return y <= 0 ? -std::numeric_limits<S>::infinity() : std::log(y); });
    block.log_scale.setZero();
  }
};

oracle::Similarity relu() {
  return {[](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
            std::vector<Real> terms{0};
            Real exponent = 0;
            for (Index i = 0; i < q.size(); ++i) {
              if (q(i) <= 0 || k(i) <= 0) continue;
              terms.push_back(std::log(q(i)) + std::log(k(i)));
              exponent = std::max(exponent, std::abs(std::log(q(i))) + std::abs(std::log(k(i))));
            }
            const Real log = oracle::log_sum_exp(terms);
            return {log, 1, log, exponent};
          },
          false};
}

template <class S>
std::vector<Case<S>> elu_features() {
  return {
      case_of(
          "elu features", true, [](Index d) { return phiattn::EluFeatures<S>(d); },
          [](Index) { return oracle::elu(); }),
      case_of(
          "relu features", true, [](Index d) { return ReluFeatures<S>(d); }, [](Index) { return relu(); })};
}

/// phi(x) = exp(|x|^2 / 2) (1, x)
template <class S>
struct ScaledFeatures : phiattn::SignedFeatureMapBase<ScaledFeatures<S>, S> {
  Index d;
  explicit ScaledFeatures(Index dimension) : d(dimension) {}
  Index dimension() const { return d; }
  Index feature_dimension() const { return d + 1; }
  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    block.values.col(0).setOnes();
    block.values.rightCols(d) = x;
    block.log_scale = x.rowwise().squaredNorm() / 2;
  }
};

oracle::Similarity scaled() {
  return {[](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
            const Real squares = (q.squaredNorm() + k.squaredNorm()) / 2, sum = 1 + q.dot(k);
            return {squares + std::log(std::abs(sum)), sum < 0 ? Real(-1) : Real(1),
                    squares + std::log1p(q.norm() * k.norm()), squares};
          },
          false};
}

template <class S>
std::vector<Case<S>> taylor_features() {
  return {case_of(
              "Taylor features 1", false, [](Index d) { return phiattn::TaylorFeatures<S>(d, 1); },
              [](Index) { return oracle::taylor(1); }),
          case_of(
              "scaled features", false, [](Index d) { return ScaledFeatures<S>(d); },
              [](Index) { return scaled(); })};
}

template <class S>
std::vector<Case<S>> memories() {
  return {case_of_memory(
              "window of 5 before a cache", false,
              [](Index, Index dv, const AttentionOptions& options) {
                return phiattn::Windowed(
                    5, phiattn::KeyValueCache<phiattn::ExponentialKernel<S>>({}, dv, options), options);
              },
              [](Index) { return oracle::exponential(); }),
          case_of_memory(
              "clusters, all of them read", true,
              [](Index d, Index dv, const AttentionOptions& options) {
                return phiattn::ClusterMemory<S>(
                    gaussian<double>(5, d, kSeed),
                    phiattn::Reparametrisation::shift(Vector<double>::Zero(d), Vector<double>::Zero(d)), dv,
                    {.top = 5}, options);
              },
              [](Index) { return oracle::exponential(); })};
}

template std::vector<Case<float>> kernels();
template std::vector<Case<double>> kernels();
template std::vector<Case<float>> elu_features();
template std::vector<Case<double>> elu_features();
template std::vector<Case<float>> taylor_features();
template std::vector<Case<double>> taylor_features();
template std::vector<Case<float>> memories();
template std::vector<Case<double>> memories();

// The families that are left out.
template <class S>
std::vector<Case<S>> no_cases() {
  return {};
}
#define PHIATTN_NO_CASES(family)              \
  template <class S>                          \
  std::vector<Case<S>> family() {             \
    return no_cases<S>();                     \
  }                                           \
  template std::vector<Case<float>> family(); \
  template std::vector<Case<double>> family();

PHIATTN_NO_CASES(random_features)
PHIATTN_NO_CASES(exponential_limit_features)
PHIATTN_NO_CASES(distance_kernels)
PHIATTN_NO_CASES(elementwise_features)
PHIATTN_NO_CASES(nystrom_features)
PHIATTN_NO_CASES(fourier_features)
PHIATTN_NO_CASES(sketches)
PHIATTN_NO_CASES(dijiang_features)
PHIATTN_NO_CASES(wrapped_maps)

}  // namespace laws
