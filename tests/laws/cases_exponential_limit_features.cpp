#include <phiattn/feature_maps/tensor_power.hpp>

#include "support/case_of.hpp"

namespace laws {

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

template std::vector<Case<float>> exponential_limit_features();
template std::vector<Case<double>> exponential_limit_features();

}  // namespace laws
