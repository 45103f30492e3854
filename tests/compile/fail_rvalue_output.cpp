// expect: no matching function for call to .*attention
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>

using namespace phiattn;

int main() {
  const Matrix<float> x = Matrix<float>::Random(4, 3);
  attention(EluFeatures<float>(3), x, x, x, Matrix<float>(4, 3));
}
