#pragma once

// Random numbers as a pure function of (seed, stream, index).

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace phiattn {

/// Philox 4x32-10, a counter-based generator (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as
/// easy as 1, 2, 3"): ten rounds of a keyed bijection of the 128-bit counter. There is no state to advance:
/// any number of any stream is read by its index, in any order and from any thread.
///
///     key = seed,  counter = (block, stream),  64 bits each and the low word first
///
/// Numbers of different streams, or of different seeds, are independent. uniform() and normal() of one stream
/// are made of the same words: use a stream for one of the two. Cost: some 40 integer multiplications a
/// block, and a block makes two numbers.
class Philox {
 public:
  using Words = std::array<std::uint32_t, 4>;

  explicit Philox(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  /// The four words of one block.
  Words words(std::uint64_t block) const {
    Words counter{low(block), high(block), low(stream_), high(stream_)};
    std::uint32_t key0 = low(seed_);
    std::uint32_t key1 = high(seed_);
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
      const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
      counter = {high(product1) ^ counter[1] ^ key0, low(product1), high(product0) ^ counter[3] ^ key1,
                 low(product0)};
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
    return counter;
  }

  /// The index-th uniform number: an odd multiple of 2^-53, so that u and 1 - u are exact and neither is ever
  /// 0. The same bits on every platform.
  double uniform(std::uint64_t index) const { return uniform(words(index / 2), index % 2); }

  /// The index-th standard normal number, by the transform of Box and Muller (1958) of the block's two
  /// uniforms:
  ///
  ///     sqrt(-2 ln u) cos(2 pi v)  and  sqrt(-2 ln u) sin(2 pi v)
  ///
  /// Platforms agree as far as their ln, cos and sin do.
  double normal(std::uint64_t index) const {
    const Words block = words(index / 2);
    const double radius = std::sqrt(-2 * std::log(uniform(block, 0)));
    const double angle = 2 * std::numbers::pi * uniform(block, 1);
    return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
  }

 private:
  static constexpr int kRounds = 10;
  static constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
  static constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
  static constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  static constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

  static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  static double uniform(const Words& block, std::uint64_t half) {
    const std::uint64_t bits = block[2 * half] | (std::uint64_t{block[2 * half + 1]} << 32);
    return static_cast<double>((bits >> 11) | 1) * 0x1p-53;
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace phiattn
