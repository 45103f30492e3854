// Softmax attention, and Performer in its place.

#include <cstdio>
#include <phiattn/phiattn.hpp>

namespace pa = phiattn;

int main() {
  // 1024 tokens. Random features are good for queries and keys that are not long: these have |x| ~ 2.3.
  const pa::Matrix<float> q = pa::Matrix<float>::Random(1024, 64) / 2;
  const pa::Matrix<float> k = pa::Matrix<float>::Random(1024, 64) / 2;
  const pa::Matrix<float> v = pa::Matrix<float>::Random(1024, 64);

  pa::ExponentialKernel<float> softmax;                             // sim(q, k) = exp(q.k)
  auto omega = pa::sample_projection<float>(256, 64, {.seed = 7});  // 256 frequencies
  pa::PositiveRandomFeatures<float> favor(omega);                   // phi(q).phi(k) ~ exp(q.k)

  const pa::AttentionOptions causal{.causality = pa::Causality::causal};
  const pa::Matrix<float> exact = pa::attention(softmax, q, k, v, causal);
  const pa::Matrix<float> approx = pa::attention(favor, q, k, v, causal);
  const pa::Matrix<float> uniform = pa::attention(pa::uniform_kernel<float>(), q, k, v, causal);

  std::printf("relative error of Performer:         %.3f\n", pa::relative_frobenius_error(approx, exact));
  std::printf("relative error of uniform attention: %.3f\n", pa::relative_frobenius_error(uniform, exact));
}
