// The generator: known answers, and moments with bounds of four standard errors.

#include <phiattn/core/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"

using phiattn::Philox;

namespace {

constexpr std::uint64_t kSeed = 2021;
constexpr int kDraws = 40000;

double power_mean(const std::vector<double>& x, int power) {
  double sum = 0;
  for (const double value : x) sum += std::pow(value, power);
  return sum / static_cast<double>(x.size());
}

/// E[x y] from the draws.
double product_mean(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum / static_cast<double>(x.size());
}

/// Four standard errors of a mean of kDraws numbers with that variance.
double four_errors(double variance) { return 4 * std::sqrt(variance / kDraws); }

template <class Draw>
std::vector<double> draws(const Draw& draw) {
  std::vector<double> x;
  for (std::uint64_t i = 0; i < kDraws; ++i) x.push_back(draw(i));
  return x;
}

}  // namespace

TEST_CASE("Philox 4x32-10 gives the known answers of Random123", "[random]") {
  // kat_vectors of Random123: counter, key, result.
  CHECK(Philox(0, 0).words(0) == Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  CHECK(Philox(kOnes, kOnes).words(kOnes) == Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // The digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  const Philox pi(0x299f31d0a4093822, 0x0370734413198a2e);
  CHECK(pi.words(0x85a308d3243f6a88) == Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform and normal numbers are the same everywhere", "[random]") {
  // From an implementation in integers and 30 digits, in another language.
  struct Known {
    std::uint64_t seed, stream, index;
    double uniform, normal;
  };
  const std::array<Known, 5> known{{
      {0, 0, 0, 0x1.c2d38b1acc4fdp-1, -0.397667538444182321},
      {0, 0, 1, 0x1.3601b7b178af5p-1, -0.310395478801738238},
      {2021, 3, 10, 0x1.c990c89c43435p-1, -0.286302318717509718},
      {2021, 3, 11, 0x1.4b2be75fbd935p-1, -0.377941632663359389},
      {~std::uint64_t{0}, std::uint64_t{1} << 40, (std::uint64_t{1} << 35) + 1, 0x1.8ea7bb40e431cp-3,
       1.55970788710735194},
  }};
  for (const Known& x : known) {
    CAPTURE(x.seed, x.stream, x.index);
    const Philox random(x.seed, x.stream);
    CHECK(random.uniform(x.index) == x.uniform);
    CHECK(std::abs(random.normal(x.index) - x.normal) <= 1e-12);
  }
}

TEST_CASE("uniform numbers are uniform in the open interval", "[random]") {
  CAPTURE(kSeed, kDraws);
  const Philox random(kSeed);
  const std::vector<double> x = draws([&](std::uint64_t i) { return random.uniform(i); });
  const auto [lowest, highest] = std::minmax_element(x.begin(), x.end());
  CHECK(*lowest > 0);
  CHECK(*highest < 1);
  // E[u^k] = 1/(k+1), Var[u^k] = 1/(2k+1) - 1/(k+1)^2
  for (int k = 1; k <= 4; ++k) {
    CAPTURE(k);
    const double mean = 1.0 / (k + 1);
    CHECK(std::abs(power_mean(x, k) - mean) <= four_errors(1.0 / (2 * k + 1) - mean * mean));
  }
  // The last bit is always 1: then 1 - u is exact and never 0.
  CHECK(std::all_of(x.begin(), x.end(), [](double u) { return std::fmod(u * 0x1p53, 2) == 1; }));
}

TEST_CASE("normal numbers have the moments of the standard normal", "[random]") {
  CAPTURE(kSeed, kDraws);
  const Philox random(kSeed);
  const std::vector<double> x = draws([&](std::uint64_t i) { return random.normal(i); });
  // E[x^k] = 0, 1, 0, 3, 0, 15;  Var[x^k] = E[x^2k] - E[x^k]^2
  const std::array<double, 6> mean{0, 1, 0, 3, 0, 15};
  const std::array<double, 6> square{1, 3, 15, 105, 945, 10395};
  for (std::size_t k = 1; k <= 6; ++k) {
    CAPTURE(k);
    const double variance = square[k - 1] - mean[k - 1] * mean[k - 1];
    CHECK(std::abs(power_mean(x, static_cast<int>(k)) - mean[k - 1]) <= four_errors(variance));
  }
}

TEST_CASE("neighbours, streams and seeds are uncorrelated", "[random]") {
  CAPTURE(kSeed, kDraws);
  const Philox random(kSeed);
  const std::vector<double> x = draws([&](std::uint64_t i) { return random.normal(i); });
  // The product of two independent standard normals has variance 1; so has that of their squares less one,
  // over 2.
  const auto check_independent = [&x](const std::vector<double>& y) {
    CHECK(std::abs(product_mean(x, y)) <= four_errors(1));
    std::vector<double> x2, y2;
    for (const double value : x) x2.push_back(value * value - 1);
    for (const double value : y) y2.push_back(value * value - 1);
    CHECK(std::abs(product_mean(x2, y2)) / 2 <= four_errors(1));
  };
  SECTION("the two of a pair") {
    check_independent(draws([&](std::uint64_t i) { return random.normal(i ^ 1); }));
  }
  SECTION("the next block") {
    check_independent(draws([&](std::uint64_t i) { return random.normal(i + 2); }));
  }
  SECTION("another stream") {
    check_independent(draws([other = Philox(kSeed, 1)](std::uint64_t i) { return other.normal(i); }));
  }
  SECTION("another seed") {
    check_independent(draws([other = Philox(kSeed + 1)](std::uint64_t i) { return other.normal(i); }));
  }
}
