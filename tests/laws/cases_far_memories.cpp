#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
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

template <class S>
std::vector<FarCase<S>> far_mixtures() {
  using namespace phiattn;
  return {far_case(
      "mixture of closures", centred_frame(), oracle::mixture(four_centres().cast<Real>(), 0.35L),
      [](Index dv, const AttentionOptions& options) {
        return ClosureMixture<S>(four_centres(), reparametrisation(centred_frame()), dv, {}, options);
      })};
}

template <class S>
std::vector<FarCase<S>> far_clusters() {
  using namespace phiattn;
  return {far_case("clusters, one of them read", balanced_frame(),
                   oracle::clusters(four_centres().cast<Real>(), 1, 0.35L),
                   [](Index dv, const AttentionOptions& options) {
                     return ClusterMemory<S>(four_centres(), reparametrisation(balanced_frame()), dv,
                                             {.top = 1}, options);
                   }),
          far_case("clusters, none of them read", centred_frame(),
                   oracle::clusters(four_centres().cast<Real>(), 0, 0.35L),
                   [](Index dv, const AttentionOptions& options) {
                     return ClusterMemory<S>(four_centres(), reparametrisation(centred_frame()), dv,
                                             {.top = 0}, options);
                   })};
}

template std::vector<FarCase<float>> far_closures();
template std::vector<FarCase<double>> far_closures();
template std::vector<FarCase<float>> far_mixtures();
template std::vector<FarCase<double>> far_mixtures();
template std::vector<FarCase<float>> far_clusters();
template std::vector<FarCase<double>> far_clusters();

}  // namespace laws
