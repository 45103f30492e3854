// Memories that are exact: a window before a cache, clusters that are all read.

#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/window.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

template <class S>
std::vector<Case<S>> memories() {
  using phiattn::ClusterMemory;
  const auto exponential = [](Index) { return oracle::exponential(); };
  const auto clusters = [](Index d, Index dv, const AttentionOptions& options) {
    return ClusterMemory<S>(gaussian<double>(5, d, kSeed),
                            phiattn::Reparametrisation::shift(gaussian<double>(d, 1, kSeed + 1).col(0),
                                                              gaussian<double>(d, 1, kSeed + 2).col(0)),
                            dv, {.top = 5}, options);
  };
  return {case_of_memory(
              "window of 5 before a cache", false,
              [](Index /*d*/, Index dv, const AttentionOptions& options) {
                return phiattn::Windowed(
                    5, phiattn::KeyValueCache<phiattn::ExponentialKernel<S>>({}, dv, options), options);
              },
              exponential),
          case_of_memory("clusters, all of them read", true, clusters, exponential),
          case_of_memory(
              "window of 16 before clusters", true,
              [clusters](Index d, Index dv, const AttentionOptions& options) {
                return phiattn::Windowed(16, clusters(d, dv, options), options);
              },
              exponential)};
}

template std::vector<Case<float>> memories();
template std::vector<Case<double>> memories();

}  // namespace laws
