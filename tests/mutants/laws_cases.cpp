// A few cases for all laws: an exact kernel, a signed one, a positive map, a signed one, and a window. What else the laws
// go through takes minutes to compile, and the same code.

#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/window.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

template <class S>
std::vector<Case<S>> kernels() {
  return {case_of(
              "exponential kernel", true, [](Index) { return phiattn::ExponentialKernel<S>(); },
              [](Index) { return oracle::exponential(); }),
          case_of(
              "Taylor kernel 1", false, [](Index) { return phiattn::PolynomialKernel<S>::taylor(1); },
              [](Index) { return oracle::taylor(1); })};
}

template <class S>
std::vector<Case<S>> elu_features() {
  return {case_of(
      "elu features", true, [](Index d) { return phiattn::EluFeatures<S>(d); },
      [](Index) { return oracle::elu(); })};
}

template <class S>
std::vector<Case<S>> taylor_features() {
  return {case_of(
      "Taylor features 1", false, [](Index d) { return phiattn::TaylorFeatures<S>(d, 1); },
      [](Index) { return oracle::taylor(1); })};
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
