// The second of two translation units that include all of the library: whatever is not inline does not link.
#include "compile/second_unit.hpp"

#include <phiattn/phiattn.hpp>

using namespace phiattn;

Matrix<float> softmax_in_second_unit(const Matrix<float>& x) {
  return attention(ExponentialKernel<float>(), x, x, x);
}

Matrix<float> favor_in_second_unit(const Matrix<float>& x) {
  return attention(PositiveRandomFeatures<float>(sample_projection<float>(8, 4)), x, x, x);
}
