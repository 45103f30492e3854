// The exponential of the library: exact zeros, NaN kept, and an error of a few units in the last place.
#include <phiattn/core/exp.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <type_traits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

/// exp over n numbers, as packets and a remainder.
template <class S>
Vector<S> vectorised(const Vector<S>& x, S shift = 0) {
  Vector<S> y = x;
  detail::exp_shifted(y.head(y.size()), shift);
  return y;
}

/// Distance from exp(x) in units of the last place of the result.
template <class S>
double error_in_ulps(S x, S result) {
  const long double exact = std::exp(static_cast<long double>(x));
  const S rounded = static_cast<S>(exact);
  const long double ulp = std::nextafter(rounded, std::numeric_limits<S>::infinity()) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(result) - exact) / ulp);
}

}  // namespace

/// ln of the smallest normal number.
template <class S>
constexpr S kLnSmallest = S(std::numeric_limits<S>::min_exponent - 1) * std::numbers::ln2_v<S>;

TEMPLATE_TEST_CASE(
    "exp of -inf and of what is far below the smallest normal number is 0, exp of NaN is NaN, exp of inf is "
    "inf",
    "[exp]", float, double) {
  using Limits = std::numeric_limits<TestType>;
  constexpr TestType kLn2 = std::numbers::ln2_v<TestType>;
  // Every length and place, so that packets and remainders all have their turn.
  for (Index n = 1; n <= 33; ++n) {
    for (Index place = 0; place < n; ++place) {
      const auto with = [&](TestType special) {
        Vector<TestType> x = Vector<TestType>::Zero(n);
        x(place) = special;
        Vector<TestType> y = vectorised(x);
        const TestType result = y(place);
        y(place) = 1;
        REQUIRE(y == Vector<TestType>::Ones(n));  // the neighbours
        return result;
      };
      for (const TestType x : {-Limits::infinity(), Limits::lowest(), TestType(-1e4),
                               2 * kLnSmallest<TestType>, kLnSmallest<TestType> - kLn2}) {
        REQUIRE(with(x) == 0);
      }
      for (const TestType x :
           {Limits::infinity(), Limits::max(), TestType(1e4), -kLnSmallest<TestType> + 2 * kLn2}) {
        REQUIRE(with(x) == Limits::infinity());
      }
      REQUIRE(std::isnan(with(Limits::quiet_NaN())));
      REQUIRE(with(std::nextafter(kLnSmallest<TestType>, TestType(0))) >= Limits::min() / 2);
      REQUIRE(with(0) == 1);
      REQUIRE(with(-Limits::min()) == 1);
    }
  }
}

TEMPLATE_TEST_CASE("one number and many follow the same rules", "[exp]", float, double) {
  using Limits = std::numeric_limits<TestType>;
  CHECK(detail::flushed_exp(-Limits::infinity()) == 0);
  CHECK(detail::flushed_exp(2 * kLnSmallest<TestType>) == 0);
  CHECK(detail::flushed_exp(Limits::infinity()) == Limits::infinity());
  CHECK(std::isnan(detail::flushed_exp(Limits::quiet_NaN())));
  CHECK(detail::flushed_exp(TestType(0)) == 1);
}

TEMPLATE_TEST_CASE("the error of exp is below 2 units in the last place over its range", "[exp]", float,
                   double) {
  std::mt19937 random(1);
  for (const TestType low : {kLnSmallest<TestType>, TestType(-20), TestType(-1), TestType(-1e-3)}) {
    std::uniform_real_distribution<TestType> uniform(low, -low);
    const Vector<TestType> x = Vector<TestType>::NullaryExpr(20011, [&] { return uniform(random); });
    const Vector<TestType> y = vectorised(x);
    double worst = 0;
    for (Index i = 0; i < x.size(); ++i) {
      worst = std::max({worst, error_in_ulps(x(i), y(i)), error_in_ulps(x(i), detail::flushed_exp(x(i)))});
    }
    CAPTURE(low);
    CHECK(worst < 2);
  }
}

TEMPLATE_TEST_CASE("exp_shifted is exp(x - shift) of rows and columns alike, whatever their length", "[exp]",
                   float, double) {
  for (Index n = 0; n <= 19; ++n) {
    Matrix<TestType> x = Matrix<TestType>::NullaryExpr(3, n, [](Index i, Index j) {
      return static_cast<TestType>(std::sin(static_cast<double>(1 + i + 3 * j)));
    });
    const Matrix<TestType> before = x;
    detail::exp_shifted(x.row(1), TestType(0.5));
    CHECK(x.row(0) == before.row(0));
    CHECK(x.row(2) == before.row(2));
    for (Index j = 0; j < n; ++j) {
      CHECK(error_in_ulps(before(1, j) - TestType(0.5), x(1, j)) < 2);
    }
  }
}

TEMPLATE_TEST_CASE("largest: -inf of nothing, NaN wherever it is, else the maximum", "[exp]", float, double) {
  using Limits = std::numeric_limits<TestType>;
  CHECK(detail::largest(Vector<TestType>(0)) == -Limits::infinity());
  for (Index n = 1; n <= 33; ++n) {
    Vector<TestType> x = Vector<TestType>::LinSpaced(n, -3, -1);
    CHECK(detail::largest(x) == x.maxCoeff());
    for (Index i = 0; i < n; ++i) {
      Vector<TestType> y = x;
      y(i) = Limits::quiet_NaN();
      REQUIRE(std::isnan(detail::largest(y)));
      y(i) = Limits::infinity();
      REQUIRE(detail::largest(y) == Limits::infinity());
    }
  }
}
