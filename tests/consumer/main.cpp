// Attention is a weighted mean: where every value is 1, every output is 1.
#include <phiattn/phiattn.hpp>

#include <cstdio>

namespace pa = phiattn;

namespace {

bool all_ones(const char* name, const pa::Matrix<float>& out) {
  const bool ones = ((out.array() - 1.0F).abs() <= 1e-5F).all();
  std::printf("%s: %s\n", name, ones ? "ones, as they should be" : "wrong");
  return ones;
}

}  // namespace

int main() {
  const pa::Matrix<float> q = pa::Matrix<float>::Random(5, 8);
  const pa::Matrix<float> k = pa::Matrix<float>::Random(7, 8);
  const pa::Matrix<float> v = pa::Matrix<float>::Ones(7, 3);

  const pa::PositiveRandomFeatures<float> favor(pa::sample_projection<float>(64, 8, {.seed = 7}));
  const bool exact = all_ones("softmax", pa::attention(pa::ExponentialKernel<float>{}, q, k, v));
  const bool linear = all_ones("positive random features", pa::attention(favor, q, k, v));
  return exact && linear ? 0 : 1;
}
