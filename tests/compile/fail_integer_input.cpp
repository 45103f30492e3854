// expect: an input holds float, double, Eigen::half or Eigen::bfloat16
#include <phiattn/phiattn.hpp>

using namespace phiattn;

int main() {
  const Matrix<int> x = Matrix<int>::Ones(4, 3);
  attention(ExponentialKernel<float>(), x, x, x);
}
