// The memories of closures and clusters, for one scalar.
#pragma once

#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>

#define PHIATTN_MEMORIES(S)               \
  namespace phiattn::inline PHIATTN_ABI { \
  template class GaussianClosure<S>;      \
  template class ClosureMixture<S>;       \
  template class ClusterMemory<S>;        \
  }
