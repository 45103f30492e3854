// Directions: unit rows, orthonormal blocks, uniform on the orthogonal group. Bounds are four standard
// errors.

#include <phiattn/projection/directions.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

/// max |rows rows^T - I|
double deviation_from_orthonormal(const Matrix<double>& rows) {
  double deviation = 0;
  for (Index i = 0; i < rows.rows(); ++i) {
    for (Index j = 0; j <= i; ++j) {
      deviation = std::max(deviation, std::abs(rows.row(i).dot(rows.row(j)) - (i == j ? 1 : 0)));
    }
  }
  return deviation;
}

}  // namespace

TEST_CASE("directions have unit rows, and orthogonal ones are orthonormal in blocks", "[projection]") {
  for (const Index d : {1, 2, 5, 16}) {
    const Index h = 3 * d + (d + 1) / 2;
    CAPTURE(kSeed, h, d);
    const Matrix<double> iid = sample_directions(h, d, Directions::iid, Philox(kSeed));
    const Matrix<double> orthogonal = sample_directions(h, d, Directions::orthogonal, Philox(kSeed));
    CHECK((iid.rowwise().norm().array() - 1).abs().maxCoeff() <= 1e-12);
    for (Index first = 0; first < h; first += d) {
      const Index count = std::min(d, h - first);
      CHECK(deviation_from_orthonormal(orthogonal.middleRows(first, count)) <= 1e-12);
    }
    // The first row of a block is its Gaussian row normalised: Gram-Schmidt has nothing to take away from it.
    CHECK((orthogonal.row(d) - iid.row(d)).cwiseAbs().maxCoeff() <= 1e-12);
  }
}

TEST_CASE("orthogonal blocks are Haar", "[projection]") {
  constexpr Index kBlocks = 4000;
  for (const Index d : {1, 2, 4}) {
    CAPTURE(kSeed, d, kBlocks);
    const Matrix<double> rows = sample_directions(kBlocks * d, d, Directions::orthogonal, Philox(kSeed));
    std::vector<double> trace, trace_squared;
    std::vector<std::vector<double>> diagonal(static_cast<std::size_t>(d));
    for (Index block = 0; block < kBlocks; ++block) {
      double sum = 0;
      for (Index j = 0; j < d; ++j) {
        const double entry = rows(block * d + j, j);
        diagonal[static_cast<std::size_t>(j)].push_back(entry);
        sum += entry;
      }
      trace.push_back(sum);
      trace_squared.push_back(sum * sum);
    }
    // E[tr U] = 0 and E[(tr U)^2] = 1 in every dimension (Diaconis and Shahshahani 1994).
    CHECK(std::abs(Moments(trace).mean) <= 4 * Moments(trace).error);
    CHECK(std::abs(Moments(trace_squared).mean - 1) <= 4 * Moments(trace_squared).error + 1e-12);
    // E[U_jj] = 0: the last column of an unfixed QR fails here too. Var[U_jj] = 1/d, and of its square
    // 3 / (d (d + 2)) - 1 / d^2.
    for (const std::vector<double>& entry : diagonal) {
      const Moments moments(entry);
      const auto n = static_cast<double>(d);
      CHECK(std::abs(moments.mean) <= 4 / std::sqrt(n * kBlocks));
      const double error = std::sqrt((3 / (n * (n + 2)) - 1 / (n * n)) / kBlocks);
      CHECK(std::abs(moments.variance - 1 / n) <= 4 * error + 1e-3);
    }
  }
}

TEST_CASE("a reflection is as likely as a rotation", "[projection]") {
  constexpr Index kBlocks = 4000;
  CAPTURE(kSeed, kBlocks);
  const Matrix<double> rows = sample_directions(kBlocks * 2, 2, Directions::orthogonal, Philox(kSeed));
  std::vector<double> determinant;
  for (Index i = 0; i < rows.rows(); i += 2) {
    determinant.push_back(rows(i, 0) * rows(i + 1, 1) - rows(i, 1) * rows(i + 1, 0));
  }
  CHECK(std::abs(Moments(determinant).mean) <= 4 * Moments(determinant).error);
}

TEST_CASE("directions stay orthonormal where the Gaussian rows are nearly dependent", "[projection]") {
  Matrix<double> rows(3, 3);
  rows << 1, 2, 3, 1, 2, 3 + 1e-9, 1, 2 - 1e-9, 3;
  detail::orthonormalise<double>(rows);
  CHECK(deviation_from_orthonormal(rows) <= 1e-12);
}

TEST_CASE("directions reject empty shapes and say which", "[projection]") {
  REQUIRE_THROWS_AS(sample_directions(0, 4, Directions::iid, Philox(kSeed)), std::invalid_argument);
  REQUIRE_THROWS_WITH(sample_directions(0, 4, Directions::iid, Philox(kSeed)),
                      ContainsSubstring("number of directions: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(sample_directions(4, 0, Directions::orthogonal, Philox(kSeed)),
                      ContainsSubstring("dimension of the directions: got 0, expected at least 1"));
}
