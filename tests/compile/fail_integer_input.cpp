// expect: an input holds float, double, Eigen::half or Eigen::bfloat16
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>

using namespace phiattn;

int main() {
  const Matrix<int> x = Matrix<int>::Ones(4, 3);
  attention(ExponentialKernel<float>(), x, x, x);
}
