// Softmax and Performer again, from narrow includes: phiattn.hpp is all of the library, and a file that attends with one
// kernel and one map need not wait for the rest to compile.

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <cstdio>

namespace pa = phiattn;

int main() {
  // 512 queries look at 2048 keys of another text: no mask, and not as many of these as of those.
  const pa::Matrix<float> q = pa::Matrix<float>::Random(512, 64) / 2;
  const pa::Matrix<float> k = pa::Matrix<float>::Random(2048, 64) / 2;
  const pa::Matrix<float> v = pa::Matrix<float>::Random(2048, 64);

  const pa::ExponentialKernel<float> softmax;
  const pa::PositiveRandomFeatures<float> favor(pa::sample_projection<float>(256, 64, {.seed = 7}));

  const pa::Matrix<float> exact = pa::attention(softmax, q, k, v);
  const pa::Matrix<float> approx = pa::attention(favor, q, k, v);
  std::printf("relative error of Performer: %.3f\n", (approx - exact).norm() / exact.norm());
}
