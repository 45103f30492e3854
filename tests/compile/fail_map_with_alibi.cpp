// expect: a feature map has no scores to modify
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/kernels/with.hpp>

int main() { phiattn::with(phiattn::EluFeatures<float>(4), phiattn::Alibi{0.25}); }
