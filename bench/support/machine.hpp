#pragma once

// What the machine can do, measured in the run that quotes it.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/packet.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace bench {

inline double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// Median seconds of `repetitions` calls; short ones, so that the median misses what else the machine does.
template <class Work>
double median_seconds(int repetitions, const Work& work) {
  std::vector<double> seconds(static_cast<std::size_t>(repetitions));
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    work();
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return median(std::move(seconds));
}

/// Keeps the compiler from dropping a value nobody reads.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Flop/s of fused multiply-adds on registers alone, on one core, in the widest packet that this build uses.
template <class S>
double peak_flops(int repetitions = 101) {
  using namespace Eigen::internal;
  using Packet = phiattn::detail::Packet<S>;
  constexpr int kSums = 12;  // enough to hide the latency, few enough for 16 registers
  constexpr int kRounds = 20000;
  const Packet factor = pset1<Packet>(S(0.999));
  const Packet term = pset1<Packet>(S(0.001));
  const double seconds = median_seconds(repetitions, [&] {
    Packet sums[kSums];  // all different, or the compiler would keep but one of them
    phiattn::detail::unroll<kSums>([&](auto i) PHIATTN_INLINE { sums[i] = pset1<Packet>(S(i)); });
    for (int round = 0; round < kRounds; ++round) {
      phiattn::detail::unroll<kSums>([&](auto i) PHIATTN_INLINE { sums[i] = pmadd(sums[i], factor, term); });
    }
    Packet total = term;
    phiattn::detail::unroll<kSums>([&](auto i) PHIATTN_INLINE { total = padd(total, sums[i]); });
    keep(total);
  });
  return 2.0 * kRounds * kSums * static_cast<double>(phiattn::detail::kPacket<S>) / seconds;
}

/// Exponentials a second, on a block that stays in L1.
template <class S>
double exp_rate() {
  constexpr phiattn::Index kCount = 2048;
  constexpr int kRounds = 50;
  phiattn::Matrix<S> x(1, kCount);
  const double seconds = median_seconds(101, [&] {
    for (int round = 0; round < kRounds; ++round) {
      x.setConstant(S(-0.5));
      phiattn::detail::exp_shifted(x.row(0), S(0.25));
      keep(x);
    }
  });
  return static_cast<double>(kCount) * kRounds / seconds;
}

}  // namespace bench
