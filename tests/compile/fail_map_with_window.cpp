// expect: a feature map takes a PrefixMask: a running sum hides no key that it has shown
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>

int main() {
  const phiattn::Matrix<float> x = phiattn::Matrix<float>::Random(4, 3);
  phiattn::Matrix<float> out(4, 3);
  phiattn::attention(phiattn::EluFeatures<float>(3), x, x, x, out, phiattn::BandMask{-2, 1});
}
