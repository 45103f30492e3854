#include <phiattn/feature_maps/elu.hpp>

#include "support/case_of.hpp"

namespace laws {

template <class S>
std::vector<Case<S>> elu_features() {
  return {case_of(
      "elu features", true, [](Index d) { return phiattn::EluFeatures<S>(d); },
      [](Index) { return oracle::elu(); })};
}

template std::vector<Case<float>> elu_features();
template std::vector<Case<double>> elu_features();

}  // namespace laws
