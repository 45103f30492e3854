// expect: an output would narrow from double
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>

using namespace phiattn;

int main() {
  const Matrix<double> x = Matrix<double>::Random(4, 3);
  Matrix<Eigen::half> out(4, 3);
  attention(ExponentialKernel<double>(), x, x, x, out);
}
