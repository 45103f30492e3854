// Memory that runs out, at every allocation of every operation of every memory: append and advance have taken whole blocks
// and size() says how many tokens, a merge all or nothing, and the memory goes on.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/any_memory.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <new>
#include <thread>

#include "../../examples/support/heap_meter.hpp"
#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace phiattn;
using laws::gaussian;
using laws::kSeed;

namespace {

constexpr Index kHeld = 30;
constexpr Index kNew = 60;
constexpr Index kD = 4;
constexpr Index kDv = 3;
constexpr double kTolerance = 1e-9;

using Any = AnyMemory<double>;

struct Sample {
  Matrix<double> q = gaussian<double>(kHeld + kNew, kD, kSeed).cwiseAbs();
  Matrix<double> k = gaussian<double>(kHeld + kNew, kD, kSeed + 1).cwiseAbs();
  Matrix<double> v = gaussian<double>(kHeld + kNew, kDv, kSeed + 2);
};

/// Calls use(n) with the n-th allocation failing, for n = 1, 2, ... until none does; each on a thread of its own, whose
/// workspace holds nothing yet.
template <class Use>
int fail_each_allocation(const Use& use) {
  for (int n = 1; n < 10000; ++n) {
    bool failed = false;
    std::thread([&] {
      { const Workspace::Frame frame; }  // a thread-local that cannot be registered ends the program
      failed = use([&](const auto& operation) {
        heap_meter::blocks_until_failure = n;
        try {
          operation();
        } catch (const std::bad_alloc&) {
        }
        return heap_meter::blocks_until_failure.exchange(0) == 0;
      });
    }).join();
    if (!failed) return n;
  }
  return -1;
}

/// What is wrong with a memory that has taken some tokens of the sample: nothing, if it reads and goes on as one should.
const char* fault_of(Any memory, Any due, const Sample& sample, Index held) {
  const auto& [q, k, v] = sample;
  const Index taken = memory.size() - held;
  if (taken < 0 || taken > kNew) return "size() is no number of tokens";
  due.append(k.middleRows(held, taken), v.middleRows(held, taken));
  if (!(maximal_error(memory.read(q), due.read(q)) < kTolerance)) return "it reads otherwise";
  const Index rest = k.rows() - held - taken;
  const Matrix<double> out = memory.advance(q.bottomRows(rest), k.bottomRows(rest), v.bottomRows(rest));
  const Matrix<double> expected = due.advance(q.bottomRows(rest), k.bottomRows(rest), v.bottomRows(rest));
  return rest == 0 || maximal_error(out, expected) < kTolerance ? nullptr : "it goes on otherwise";
}

void check_memory(const Any& empty) {
  const Sample sample;
  const auto& q = sample.q;
  const auto& k = sample.k;
  const auto& v = sample.v;
  Any held = empty;
  held.append(k.topRows(kHeld), v.topRows(kHeld));
  const char* fault = nullptr;
  const auto note = [&fault](const char* found) {
    if (!fault) fault = found;
  };
  for (const Any* start : {&empty, static_cast<const Any*>(&held)}) {
    const Index n = start->size();
    Matrix<double> out(kNew, kDv);
    int failures = fail_each_allocation([&](const auto& with_failure) {
      Any memory = *start;
      const bool failed = with_failure([&] { memory.append(k.middleRows(n, kNew), v.middleRows(n, kNew)); });
      note(fault_of(memory, *start, sample, n));
      return failed;
    });
    CHECK(failures > 1);
    failures = fail_each_allocation([&](const auto& with_failure) {
      Any memory = *start;
      const bool failed = with_failure(
          [&] { memory.advance(q.middleRows(n, kNew), k.middleRows(n, kNew), v.middleRows(n, kNew), out); });
      note(fault_of(memory, *start, sample, n));
      return failed;
    });
    CHECK(failures > 1);
    fail_each_allocation([&](const auto& with_failure) {
      Any memory = *start, other = empty;
      other.append(k.middleRows(n, kNew), v.middleRows(n, kNew));
      const bool failed = with_failure([&] { memory.merge(other); });
      const bool merged = memory.size() == n + kNew;
      if (!merged && memory.size() != n) note("half merged");
      Any due = *start;
      if (merged) due.merge(other);
      if (!(maximal_error(memory.read(q), due.read(q)) < kTolerance)) note("a merge reads otherwise");
      return failed;
    });
    fail_each_allocation([&](const auto& with_failure) {
      Any memory = *start;
      const bool failed = with_failure([&] { memory.read(q.topRows(kNew), out); });
      if (!(maximal_error(memory.read(q), start->read(q)) < kTolerance)) note("a read changes it");
      const bool copy_failed = with_failure([&] {
        const Any copy = *start;
        memory = copy;
      });
      if (!(maximal_error(memory.read(q), start->read(q)) < kTolerance)) note("an assignment changes it");
      return failed || copy_failed;
    });
  }
  CHECK(std::string(fault ? fault : "") == "");
}

template <class M>
void check_alone_and_behind_windows(const M& memory) {
  check_memory(memory);
  for (const Index window : {0, 7, 40}) {
    CAPTURE(window);
    check_memory(Windowed(window, memory));
  }
}

}  // namespace

TEST_CASE("whichever allocation fails, a memory has whole blocks and goes on") {
  if (!heap_meter::kHeapIsMetered) return;
  CAPTURE(kSeed);
  const AttentionOptions chunks{.chunk = 16};
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  const Matrix<double> centres = gaussian<double>(5, kD, kSeed + 3).cwiseAbs();
  SECTION("a cache") {
    check_alone_and_behind_windows(KeyValueCache(ExponentialKernel<double>(), kDv, chunks));
  }
  SECTION("a state of logarithms") {
    const auto omega = sample_projection<double>(8, kD);
    check_alone_and_behind_windows(LinearState(PositiveRandomFeatures<double>(omega), kDv, chunks));
  }
  SECTION("a state of signed features") {
    check_alone_and_behind_windows(LinearState(CosformerFeatures<double>(kD, 300), kDv, chunks));
  }
  SECTION("a closure") { check_alone_and_behind_windows(GaussianClosure<double>(kD, kDv, {}, chunks)); }
  SECTION("a mixture of closures") {
    check_alone_and_behind_windows(ClosureMixture<double>(centres, plain, kDv, {}, chunks));
  }
  SECTION("clusters") {
    check_alone_and_behind_windows(ClusterMemory<double>(centres, plain, kDv, {.top = 5}, chunks));
  }
}
