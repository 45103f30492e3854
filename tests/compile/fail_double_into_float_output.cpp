// expect: an output would narrow from double
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>

using namespace phiattn;

int main() {
  const Matrix<double> x = Matrix<double>::Random(4, 3);
  Matrix<float> out(4, 3);
  attention(EluFeatures<double>(3), x, x, x, out);
}
