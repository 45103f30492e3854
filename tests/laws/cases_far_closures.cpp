#include <phiattn/memories/gaussian_closure.hpp>

#include "support/far_case_of.hpp"

namespace laws {

template <class S>
std::vector<FarCase<S>> far_closures() {
  using namespace phiattn;
  constexpr Index d = kFarDimension;
  return {
      far_case(
          "closure", oracle::Frame::identity(d), oracle::closure(0.35L),
          [](Index dv, const AttentionOptions& options) { return GaussianClosure<S>(d, dv, {}, options); }),
      far_case("diagonal closure", centred_frame(), oracle::closure(0.2L, true),
               [](Index dv, const AttentionOptions& options) {
                 return GaussianClosure<S>(reparametrisation(centred_frame()), dv,
                                           {.covariance = Covariance::diagonal, .freezing = 0.2}, options);
               }),
      far_case("centred and balanced closure", balanced_frame(), oracle::closure(0.35L),
               [](Index dv, const AttentionOptions& options) {
                 return GaussianClosure<S>(reparametrisation(balanced_frame()), dv, {}, options);
               })};
}

template std::vector<FarCase<float>> far_closures();
template std::vector<FarCase<double>> far_closures();

}  // namespace laws
