#include <phiattn/memories/closure_mixture.hpp>

#include "support/far_case_of.hpp"

namespace laws {

template <class S>
std::vector<FarCase<S>> far_mixtures() {
  using namespace phiattn;
  return {far_case(
      "mixture of closures", centred_frame(), oracle::mixture(four_centres().cast<Real>(), 0.35L),
      [](Index dv, const AttentionOptions& options) {
        return ClosureMixture<S>(four_centres(), reparametrisation(centred_frame()), dv, {}, options);
      })};
}

template std::vector<FarCase<float>> far_mixtures();
template std::vector<FarCase<double>> far_mixtures();

}  // namespace laws
