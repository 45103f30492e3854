#include <phiattn/memories/cluster_memory.hpp>

#include "support/far_case_of.hpp"

namespace laws {

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

template std::vector<FarCase<float>> far_clusters();
template std::vector<FarCase<double>> far_clusters();

}  // namespace laws
