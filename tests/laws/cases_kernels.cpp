#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include "support/case_of.hpp"

namespace laws {

template <class S>
std::vector<Case<S>> kernels() {
  const auto taylor = [](Index n) {
    return case_of(
        "Taylor kernel " + std::to_string(n), n % 2 == 0,
        [n](Index) { return phiattn::PolynomialKernel<S>::taylor(n); },
        [n](Index) { return oracle::taylor(n); });
  };
  return {case_of(
              "exponential kernel", true, [](Index) { return phiattn::ExponentialKernel<S>(); },
              [](Index) { return oracle::exponential(); }),
          taylor(0),
          taylor(1),
          taylor(2),
          taylor(3),
          case_of(
              "exponential limit kernel 4", true,
              [](Index) { return phiattn::PolynomialKernel<S>::exponential_limit(4); },
              [](Index) { return oracle::exponential_limit(4); })};
}

template std::vector<Case<float>> kernels();
template std::vector<Case<double>> kernels();

}  // namespace laws
