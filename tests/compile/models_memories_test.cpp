// Every memory is one, in both compute types. Apart from its header, which would have each of its users check.
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>

using namespace phiattn;

static_assert(Memory<ForgetfulMemory<float>> && Memory<ForgetfulMemory<double>>);
static_assert(Memory<GaussianClosure<float>> && Memory<GaussianClosure<double>>);
static_assert(Memory<ClosureMixture<float>> && Memory<ClosureMixture<double>>);
static_assert(Memory<ClusterMemory<float>> && Memory<ClusterMemory<double>>);
