#pragma once

// What a piece of work takes, beside another and beside the peak of the machine.

#include "../../examples/support/heap_hooks.hpp"
#include "machine.hpp"

#include <cstdint>
#include <ctime>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace bench {

/// Memory once freed stays with the program, so that nobody is charged for the pages of fresh buffers: to get them anew
/// takes plain Eigen's large temporaries longer than the work on them.
inline void keep_pages() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

/// Heap that a call takes at most, in a thread of its own, whose workspace is as empty as that of a program that begins.
template <class Call>
std::int64_t working_memory(const Call& call) {
  std::int64_t peak = 0;
  std::thread([&] { peak = heap_meter::usage_of(call).peak; }).join();
  return peak;
}

/// CPU seconds of one call, over as many as take some milliseconds.
class Timed {
 public:
  explicit Timed(std::function<void()> work) : work_(std::move(work)) {
    for (double seconds = run(); seconds < 4e-3 && calls_ < (1 << 20); seconds = run()) calls_ *= 2;
  }
  double sample() {
    samples_.push_back(run() / calls_);
    return samples_.back();
  }
  double seconds() const { return median(samples_); }

 private:
  double run() const {
    const std::clock_t start = std::clock();
    for (int i = 0; i < calls_; ++i) work_();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

  std::function<void()> work_;
  int calls_ = 1;
  std::vector<double> samples_;
};

/// Medians over rounds in which both take their turn, ours between two measurements of the peak.
struct Comparison {
  double seconds = 0;
  double of_peak = 0;
  double times_as_fast = 0;  // as the other
};

template <class S>
Comparison compare(int rounds, double flops, const std::function<void()>& ours,
                   const std::function<void()>& other) {
  constexpr int kPeaks = 15;
  Timed mine(ours), theirs(other);
  std::vector<double> of_peak;
  for (int round = 0; round < rounds; ++round) {
    const double before = peak_flops<S>(kPeaks);
    const double rate = flops / mine.sample();
    of_peak.push_back(rate / ((before + peak_flops<S>(kPeaks)) / 2));
    theirs.sample();
  }
  return {mine.seconds(), median(of_peak), theirs.seconds() / mine.seconds()};
}

}  // namespace bench
