#include "golden/cases_run.hpp"

namespace golden {

template struct Runs<phiattn::AnyFeatureMap<float, phiattn::LogFeatureMapTag>>;
template struct Runs<phiattn::AnyFeatureMap<double, phiattn::LogFeatureMapTag>>;
template struct Runs<phiattn::AnyFeatureMap<float, phiattn::SignedFeatureMapTag>>;
template struct Runs<phiattn::AnyFeatureMap<double, phiattn::SignedFeatureMapTag>>;

}  // namespace golden
