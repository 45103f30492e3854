// expect: an output holds float, double, Eigen::half or Eigen::bfloat16
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>

using namespace phiattn;

int main() {
  const Matrix<float> x = Matrix<float>::Ones(4, 3);
  Matrix<int> out(4, 3);
  attention(ExponentialKernel<float>(), x, x, x, out);
}
