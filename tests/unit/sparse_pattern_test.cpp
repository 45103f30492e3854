// Sparse patterns: what the constructions promise, how many dimensions that takes, and what they refuse.
#include <phiattn/constructions/sparse_pattern.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

/// `values` in every row and every column, in random places.
Matrix<double> random_target(Index length, const std::vector<double>& values, std::uint64_t seed) {
  const Philox random(seed, 1);
  std::uint64_t next = 0;
  Matrix<double> target = Matrix<double>::Zero(length, length);
  std::vector<Index> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  for (const double value : values) {
    const auto taken = [&] {
      for (Index i = 0; i < length; ++i)
        if (target(i, places[static_cast<std::size_t>(i)]) != 0) return true;
      return false;
    };
    do {
      for (std::size_t i = places.size() - 1; i > 0; --i)
        std::swap(places[i],
                  places[static_cast<std::size_t>(random.uniform(next++) * static_cast<double>(i + 1))]);
    } while (taken());
    for (Index i = 0; i < length; ++i) target(i, places[static_cast<std::size_t>(i)]) = value;
  }
  return target;
}

/// The definition, pair by pair.
PatternError naive_error(const SparsePattern& pattern, const Matrix<double>& target) {
  PatternError error{0, 0};
  const auto score = [&](Index i, Index j) { return pattern.queries.row(i).dot(pattern.keys.row(j)); };
  for (Index i = 0; i < target.rows(); ++i) {
    for (Index l = 0; l < target.cols(); ++l) {
      if (target(i, l) == 0) continue;
      for (Index j = 0; j < target.cols(); ++j) {
        const double difference = score(i, j) - score(i, l);
        if (target(i, j) == 0) {
          error.leakage = std::max(error.leakage, std::exp(difference));
        } else {
          error.ratio = std::max(error.ratio, std::abs(difference - std::log(target(i, j) / target(i, l))));
        }
      }
    }
  }
  return error;
}

}  // namespace

TEST_CASE("the pattern error is that of its definition", "[sparse_pattern]") {
  const Matrix<double> target = random_target(70, {0.7, 0.2, 0.1}, kSeed);  // more than one chunk of rows
  const Matrix<double> g = gaussian_rows(70, 20, kSeed);
  for (const SparsePattern& pattern :
       {random_projection_pattern(target, g, 0.1, 0.5), exact_ratio_pattern(target, g, 0.1, 4)}) {
    const PatternError came = pattern_error(pattern, target), due = naive_error(pattern, target);
    CHECK(came.leakage == Approx(due.leakage));
    CHECK(came.ratio == Approx(due.ratio).margin(1e-12));
  }
  // No zero, no leakage.
  const Matrix<double> full = Matrix<double>::Ones(3, 3);
  CHECK(pattern_error(exact_ratio_pattern(full, gaussian_rows(3, 8, kSeed), 0.1, 1), full).leakage == 0);
}

TEST_CASE("ratios are exact by construction, however few the dimensions and whatever the rows sum to",
          "[sparse_pattern]") {
  // Keys of a row depend nearly linearly on each other in 3 dimensions: what rounding there is grows with the queries.
  const Matrix<double> target = 17 * random_target(40, {0.6, 0.3, 0.1}, kSeed);
  for (const Index d : {3, 8, 64}) {
    const SparsePattern pattern = exact_ratio_pattern(target, gaussian_rows(40, d, kSeed), 0.1, 4);
    const double size = pattern.queries.rowwise().norm().maxCoeff();
    CHECK(pattern_error(pattern, target).ratio <=
          64 * static_cast<double>(d) * std::numeric_limits<double>::epsilon() * size * size);
    CHECK((pattern.keys.rowwise().norm().array() - 1).abs().maxCoeff() < 1e-14);
  }
}

TEST_CASE("a pattern moves with its tokens", "[sparse_pattern]") {
  // Renaming the tokens renames the inputs: row i of G belongs to token i.
  const Matrix<double> target = random_target(16, {0.7, 0.3}, kSeed), g = gaussian_rows(16, 24, kSeed);
  const Matrix<double> renamed = target.colwise().reverse().rowwise().reverse();
  const Matrix<double> renamed_g = g.colwise().reverse();
  const SparsePattern a = exact_ratio_pattern(target, g, 0.1, 4);
  const SparsePattern b = exact_ratio_pattern(renamed, renamed_g, 0.1, 4);
  CHECK((a.queries.colwise().reverse() - b.queries).cwiseAbs().maxCoeff() < 1e-11);
  CHECK(pattern_error(a, target).leakage == Approx(pattern_error(b, renamed).leakage));
}

TEST_CASE("in the dimensions of the proof the random projection holds what it promises", "[sparse_pattern]") {
  constexpr Index kLength = 32;
  constexpr double kEps1 = 0.1, kEps2 = 2, kDelta = 0.1;
  const Index d = random_projection_dimension(kLength, 2, 3.0 / 7, kEps1, kEps2, kDelta);
  CAPTURE(kSeed, d);
  for (std::uint64_t seed = kSeed; seed < kSeed + 5; ++seed) {
    const Matrix<double> target = random_target(kLength, {0.7, 0.3}, seed);
    const PatternError error = pattern_error(
        random_projection_pattern(target, gaussian_rows(kLength, d, seed), kEps1, kEps2), target);
    CHECK(error.ratio <= kEps2);
    CHECK(error.leakage <= kEps1);
  }
  // With a twentieth of them it does not: the test could fail.
  const Matrix<double> target = random_target(kLength, {0.7, 0.3}, kSeed);
  const PatternError error = pattern_error(
      random_projection_pattern(target, gaussian_rows(kLength, d / 20, kSeed), kEps1, kEps2), target);
  CHECK((error.ratio > kEps2 || error.leakage > kEps1));
}

TEST_CASE("the dimension of the proof is that of its formula", "[sparse_pattern]") {
  // beta = ln(1 / (0.5 * 0.1)) + 1 = 3.9957..., eps = 1 / (2 * 2 * beta) = 0.0625666...
  const double beta = std::log(20.0) + 1;
  const double eps = 1 / (4 * beta);
  const double due = std::log(4 * 100 * 100 / 0.05) / (eps * eps / 4 - std::pow(eps, 3) / 6);
  const Index d = random_projection_dimension(100, 4, 0.5, 0.1, 1, 0.05);
  CHECK(static_cast<double>(d) >= due);
  CHECK(static_cast<double>(d) < due + 1);
  // As ln L: each doubling adds the same.
  const auto at = [](Index length) { return random_projection_dimension(length, 4, 0.5, 0.1, 1, 0.05); };
  CHECK(std::abs((at(200) - at(100)) - (at(6400) - at(3200))) <= 1);
}

TEST_CASE("the exact-ratio construction takes a number of dimensions that grows as log L",
          "[sparse_pattern]") {
  // Least d of k = 2, eps1 = 0.1, margin 4; the medians reported for L = 64 ... 512 are about 46, 54, 66, 75.
  constexpr std::uint64_t kTrials = 11;
  CAPTURE(kSeed);
  std::vector<double> medians;
  for (const Index length : {64, 128, 256, 512}) {
    std::vector<Index> least;
    for (std::uint64_t trial = 0; trial < (length < 512 ? kTrials : 5); ++trial) {
      const Matrix<double> target = random_target(length, {0.7, 0.3}, kSeed + trial);
      const Matrix<double> g = gaussian_rows(length, 200, kSeed + trial);
      Index d = 30;
      while (pattern_error(exact_ratio_pattern(target, g.leftCols(d), 0.1, 4), target).leakage > 0.1) ++d;
      least.push_back(d);
    }
    std::sort(least.begin(), least.end());
    medians.push_back(static_cast<double>(least[least.size() / 2]));
  }
  CAPTURE(medians);
  // A trial scatters by about 7: the median of 11 by 3, and four standard errors are 12.
  const std::vector<double> reported{46, 54, 66, 75};
  for (std::size_t i = 0; i < medians.size(); ++i) CHECK(std::abs(medians[i] - reported[i]) <= 12);
  // L grows 8-fold, d by less than 2.
  CHECK(medians.back() / medians.front() < 2);
}

TEST_CASE("the constructions refuse what they cannot do", "[sparse_pattern]") {
  const Matrix<double> good = random_target(6, {0.7, 0.3}, kSeed), g = gaussian_rows(6, 4, kSeed);
  const auto exact = [&](const Matrix<double>& target, const Matrix<double>& rows, double eps1 = 0.1,
                         double margin = 4) { return exact_ratio_pattern(target, rows, eps1, margin); };
  const auto projected = [&](const Matrix<double>& target, const Matrix<double>& rows, double eps1 = 0.1,
                             double eps2 = 0.5) {
    return random_projection_pattern(target, rows, eps1, eps2);
  };
  Matrix<double> bad = good;
  bad.row(2).setZero();
  CHECK_THROWS_WITH(exact(bad, g),
                    ContainsSubstring("nonzeros of the target's row 2: got 0, expected at least 1"));
  CHECK_THROWS_WITH(projected(bad, g), ContainsSubstring("row 2"));
  bad(2, 3) = -1;
  CHECK_THROWS_WITH(exact(bad, g), ContainsSubstring("target(2, 3): got -1.0"));
  bad(2, 3) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(projected(bad, g), ContainsSubstring("target(2, 3): got nan"));
  CHECK_THROWS_WITH(exact(good.leftCols(5), g),
                    ContainsSubstring("columns of the target: got 5, expected 6"));
  CHECK_THROWS_WITH(exact(good, g.topRows(5)), ContainsSubstring("rows of G: got 5, expected 6"));
  CHECK_THROWS_WITH(exact(good, g.leftCols(1)), ContainsSubstring("row 0: got 1, expected at least 2"));
  CHECK_THROWS_WITH(exact(good, Matrix<double>::Ones(6, 4)), ContainsSubstring("linearly dependent"));
  CHECK_THROWS_WITH(projected(good, Matrix<double>(6, 0)), ContainsSubstring("columns of G (d): got 0"));
  for (const double eps1 : {0.0, 1.0, -1.0}) {
    CHECK_THROWS_WITH(exact(good, g, eps1), ContainsSubstring("eps1: got"));
    CHECK_THROWS_WITH(projected(good, g, eps1), ContainsSubstring("eps1: got"));
  }
  CHECK_THROWS_WITH(exact(good, g, 0.1, 0), ContainsSubstring("margin: got 0"));
  CHECK_THROWS_WITH(projected(good, g, 0.1, -1), ContainsSubstring("eps2: got -1"));
  CHECK_THROWS_WITH(random_projection_dimension(0, 2, 1, 0.1, 1, 0.1), ContainsSubstring("length L"));
  CHECK_THROWS_WITH(random_projection_dimension(9, 0, 1, 0.1, 1, 0.1), ContainsSubstring("nonzeros k"));
  CHECK_THROWS_WITH(random_projection_dimension(9, 2, 1.5, 0.1, 1, 0.1), ContainsSubstring("gamma"));
  CHECK_THROWS_WITH(random_projection_dimension(9, 2, 1, 0.1, 0, 0.1), ContainsSubstring("eps2"));
  CHECK_THROWS_WITH(random_projection_dimension(9, 2, 1, 0.1, 1, 1), ContainsSubstring("delta"));
  const SparsePattern pattern = exact(good, g);
  CHECK_THROWS_AS(pattern_error(pattern, random_target(7, {0.7, 0.3}, kSeed)), std::invalid_argument);
}
