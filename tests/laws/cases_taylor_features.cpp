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

template std::vector<Case<float>> taylor_features();
template std::vector<Case<double>> taylor_features();

}  // namespace laws
