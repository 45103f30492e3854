// The error measures on matrices whose errors can be counted by hand, and the uniform baseline.
#include <phiattn/analysis/error.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

Matrix<double> two_by_two(double a, double b, double c, double d) {
  Matrix<double> x(2, 2);
  x << a, b, c, d;
  return x;
}

const Matrix<double> kExact = two_by_two(3, 0, 0, 4);

}  // namespace

TEST_CASE("the relative Frobenius error is |A - B| / |B|", "[error_measures]") {
  CHECK(relative_frobenius_error(two_by_two(3, 0, 0, 4), kExact) == 0);
  CHECK(relative_frobenius_error(two_by_two(3, 3, 4, 4), kExact) == Approx(1));
  CHECK(relative_frobenius_error(two_by_two(0, 0, 0, 0), kExact) == Approx(1));
  CHECK(relative_frobenius_error(two_by_two(3, 0, 0, 4.5), kExact) == Approx(0.1));
  const Matrix<double> zero = Matrix<double>::Zero(2, 2);
  CHECK(relative_frobenius_error(zero, zero) == 0);
  CHECK(relative_frobenius_error(kExact, zero) == std::numeric_limits<double>::infinity());
  CHECK(relative_frobenius_error(Matrix<double>(0, 3), Matrix<double>(0, 3)) == 0);
}

TEST_CASE("the maximal error is that of the worst entry", "[error_measures]") {
  CHECK(maximal_error(two_by_two(3, -2, 1, 4), kExact) == 2);
  CHECK(maximal_error(kExact, kExact) == 0);
  CHECK(maximal_error(Matrix<double>(0, 3), Matrix<double>(0, 3)) == 0);
}

TEST_CASE("the row L1 error is the mean over the rows of their summed errors", "[error_measures]") {
  CHECK(row_l1_error(two_by_two(3, 1, 1, 2), kExact) == Approx(2));
  // One-hot rows that all miss are as wrong as weights get.
  CHECK(row_l1_error(two_by_two(0, 1, 1, 0), two_by_two(1, 0, 0, 1)) == Approx(2));
  CHECK(row_l1_error(Matrix<double>(0, 3), Matrix<double>(0, 3)) == 0);
}

TEST_CASE("a NaN on either side, wherever it is, makes each measure NaN", "[error_measures]") {
  constexpr Index n = 7;
  const Matrix<float> good = Matrix<float>::Ones(n, n);
  for (Index place = 0; place < n * n; ++place) {
    Matrix<float> bad = good;
    bad(place / n, place % n) = std::numeric_limits<float>::quiet_NaN();
    for (const auto& [a, b] : {std::pair(bad, good), std::pair(good, bad)}) {
      REQUIRE(std::isnan(relative_frobenius_error(a, b)));
      REQUIRE(std::isnan(maximal_error(a, b)));
      REQUIRE(std::isnan(row_l1_error(a, b)));
    }
  }
}

TEST_CASE("measures take expressions and scalars of either kind and sum in double", "[error_measures]") {
  // 1 + 2^-30 is not a float: the difference is lost unless both go to double first.
  const Matrix<double> exact = Matrix<double>::Constant(2, 2, 1 + std::ldexp(1.0, -30));
  const Matrix<float> ones = Matrix<float>::Ones(2, 2);
  CHECK(maximal_error(ones, exact) == std::ldexp(1.0, -30));
  CHECK(maximal_error(2 * ones, exact + exact) == std::ldexp(1.0, -29));
  CHECK(row_l1_error(ones, exact) == std::ldexp(1.0, -29));
}

TEMPLATE_TEST_CASE("uniform attention is the mean of the values in sight", "[error_measures]", float,
                   double) {
  constexpr Index n = 37;
  const Matrix<TestType> q = Matrix<TestType>::Constant(n, 4, 3), k = Matrix<TestType>::Random(n, 4);
  const Matrix<TestType> v = Vector<TestType>::LinSpaced(n, 1, TestType(n));
  const auto uniform = uniform_kernel<TestType>();
  const Matrix<TestType> full = attention(uniform, q, k, v, {.chunk = 8});
  const Matrix<TestType> causal = attention(uniform, q, k, v, {.causality = Causality::causal, .chunk = 8});
  // Sums of up to 37 whole numbers are exact; only the division rounds.
  for (Index i = 0; i < n; ++i) {
    CHECK(full(i, 0) == TestType(n + 1) / 2);
    CHECK(causal(i, 0) == TestType(i + 2) / 2);
  }
  CHECK(attention_weights(uniform, q, k) == Matrix<TestType>::Constant(n, n, TestType(1) / TestType(n)));
}
