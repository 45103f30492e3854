// All of the library compiles without exceptions, and attention works.
#include <phiattn/phiattn.hpp>

using namespace phiattn;

namespace {

/// Where every value is 1, so is every output.
template <class F>
bool gives_ones(const F& similarity) {
  const Matrix<float> x = Matrix<float>::Random(9, 4), v = Matrix<float>::Ones(9, 2);
  bool ones = true;
  for (const Causality causality : {Causality::none, Causality::causal}) {
    ones = ones && attention(similarity, x, x, v, {.causality = causality, .chunk = 4}).isApprox(v);
  }
  return ones;
}

}  // namespace

int main() {
  const bool ones = gives_ones(ExponentialKernel<float>()) &&
                    gives_ones(PolynomialKernel<float>::taylor(2)) &&
                    gives_ones(PositiveRandomFeatures<float>(sample_projection<float>(8, 4))) &&
                    gives_ones(TaylorFeatures<float>(4, 2)) && gives_ones(EluFeatures<float>(4));
  return ones ? 0 : 1;
}
