// expect: of a signed kernel there is none; it takes masks
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/kernels/with.hpp>

int main() {
  const phiattn::Matrix<float> bias = phiattn::Matrix<float>::Zero(4, 4);
  phiattn::with(phiattn::PolynomialKernel<float>::taylor(2), phiattn::Bias(bias));
}
