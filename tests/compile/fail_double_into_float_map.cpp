// expect: an input would narrow
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>

using namespace phiattn;

int main() {
  const Matrix<double> x = Matrix<double>::Random(4, 3);
  attention(EluFeatures<float>(3), x, x, x);
}
