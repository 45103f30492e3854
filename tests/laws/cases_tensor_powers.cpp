#include <phiattn/feature_maps/tensor_power.hpp>

#include "support/case_of.hpp"

namespace laws {

/// Degree 0 is uniform attention. In many dimensions, where there would be d^3 features, the cubic ones are linear.
template <class S>
std::vector<Case<S>> taylor_features() {
  std::vector<Case<S>> cases;
  for (const Index n : {0, 1, 2, 3}) {
    for (const auto layout : {phiattn::TensorLayout::symmetric, phiattn::TensorLayout::full}) {
      const auto degree = [n](Index d) { return n == 3 && d > 16 ? Index{1} : n; };
      const bool full = layout == phiattn::TensorLayout::full;
      cases.push_back(case_of(
          "Taylor features " + std::to_string(n) + (full ? ", full" : ""), n % 2 == 0,
          [=](Index d) { return phiattn::TaylorFeatures<S>(d, degree(d), layout); },
          [=](Index d) { return oracle::taylor(degree(d)); }));
    }
  }
  return cases;
}

template <class S>
std::vector<Case<S>> exponential_limit_features() {
  std::vector<Case<S>> cases;
  for (const auto layout : {phiattn::TensorLayout::symmetric, phiattn::TensorLayout::full}) {
    const bool full = layout == phiattn::TensorLayout::full;
    cases.push_back(case_of(
        std::string("exponential limit features 2") + (full ? ", full" : ""), true,
        [=](Index d) { return phiattn::ExponentialLimitFeatures<S>(d, 2, layout); },
        [](Index) { return oracle::exponential_limit(2); }));
  }
  return cases;
}

template std::vector<Case<float>> taylor_features();
template std::vector<Case<double>> taylor_features();
template std::vector<Case<float>> exponential_limit_features();
template std::vector<Case<double>> exponential_limit_features();

}  // namespace laws
