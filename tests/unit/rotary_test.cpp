// Rotary positions: stored values, and the laws that make them positions.
#include <phiattn/positions/rotary.hpp>

#include <limits>

#include "support/catch.hpp"
#include "support/head_tensors.hpp"
#include "support/json.hpp"
#include "support/problem.hpp"
#include "support/thrown.hpp"

using namespace laws;
using phiattn::rotary;
using phiattn::RotaryOptions;
using phiattn::RotaryPairs;

namespace {

template <class S>
constexpr double kEpsilon = std::numeric_limits<S>::epsilon();

template <class A, class B>
double distance_of(const A& a, const B& b) {
  return static_cast<double>((a - b).cwiseAbs().maxCoeff());
}

}  // namespace

TEMPLATE_TEST_CASE("rotary positions equal the stored ones", "[rotary]", float, double) {
  using S = TestType;
  const auto json = golden::load("rotary.json");
  const Matrix<S> x = golden::matrix(json["x"]).cast<S>();
  const Index first = json["first_position"];
  for (const auto pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
    const auto due = golden::matrix(json[pairs == RotaryPairs::halves ? "halves" : "interleaved"]);
    const Matrix<S> came = rotary(x, first, {.base = json["base"], .pairs = pairs});
    CHECK(distance_of(came.template cast<double>(), due) <= 8 * kEpsilon<S> * due.cwiseAbs().maxCoeff());
  }
}

TEMPLATE_TEST_CASE("scores depend on differences of positions, turns add up and keep norms", "[rotary]",
                   float, double) {
  using S = TestType;
  const Matrix<S> q = gaussian<S>(1, 8, kSeed), k = gaussian<S>(1, 8, kSeed + 1);
  for (const auto pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
    const RotaryOptions options{.base = 100, .pairs = pairs};
    const double allowed = 64 * kEpsilon<S>;
    for (const Index shift : {-50, 0, 1, 1000}) {
      const S score = (rotary(q, 7 + shift, options) * rotary(k, 3 + shift, options).transpose()).value();
      const S due = (rotary(q, 4, options) * k.transpose()).value();
      CHECK(std::abs(score - due) <= allowed * q.norm() * k.norm());
    }
    CHECK(distance_of(rotary(rotary(q, 5, options), 6, options), rotary(q, 11, options)) <= allowed);
    CHECK(distance_of(rotary(rotary(q, 5, options), -5, options), q) <= allowed);
    CHECK(std::abs(rotary(q, 12345, options).norm() - q.norm()) <= allowed);
    CHECK(rotary(q, 0, options) == q);
  }
}

TEST_CASE("far positions are as exact as near ones", "[rotary]") {
  Matrix<float> x(1, 4);
  x << 1, 0, 1, 0;
  const Index position = 12'345'678;
  const Matrix<float> came = rotary(x, position);
  for (const Index i : {0, 1}) {
    const long double angle = static_cast<long double>(position) * std::pow(10000.0L, -2.0L * i / 4);
    CHECK(std::abs(came(0, 2 * i) - std::cos(angle)) <= 1e-7L);
    CHECK(std::abs(came(0, 2 * i + 1) - std::sin(angle)) <= 1e-7L);
  }
}

TEST_CASE("rotary takes any expression, into any place, in place, and of heads", "[rotary]") {
  const Matrix<float> x = gaussian<float>(6, 8, kSeed);
  const Matrix<float> due = rotary(x, 3);
  for (Index t = 0; t < 6; ++t) CHECK(rotary(x.row(t), 3 + t) == due.row(t));
  const Eigen::MatrixXf columns = x;
  CHECK(rotary(columns, 3) == due);
  CHECK(rotary(2 * x, 3) == rotary(Matrix<float>(2 * x), 3));
  CHECK(distance_of(rotary(x.cast<Eigen::half>().eval(), 3), due) <= 2e-3);
  Matrix<float> wide = Matrix<float>::Constant(6, 12, 7);
  rotary(x, 3, wide.middleCols(2, 8));
  CHECK(wide.middleCols(2, 8) == due);
  CHECK(wide.leftCols(2).isConstant(7));
  Matrix<float> in_place = x;
  rotary(in_place, 3, in_place);
  CHECK(in_place == due);

  Tensor<float> heads({2, 3, 6, 8}, Layout::bthd, kSeed), out({2, 3, 6, 8}, Layout::bhtd);
  rotary(heads.view(), 3, out.view(), {.pairs = RotaryPairs::halves});
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 3; ++h)
      CHECK(out.head(b, h) == rotary(heads.head(b, h), 3, {.pairs = RotaryPairs::halves}));
  }
  rotary(heads.view(), 3, {.pairs = RotaryPairs::halves});
  CHECK(heads.head(1, 2) == out.head(1, 2));
}

TEST_CASE("some dimensions, given frequencies, and numbers that are none", "[rotary]") {
  Matrix<float> x = gaussian<float>(3, 6, kSeed);
  const Matrix<float> part = rotary(x, 2, {.dimensions = 4});
  CHECK(part.leftCols(4) == rotary(x.leftCols(4), 2));
  CHECK(part.rightCols(2) == x.rightCols(2));
  CHECK(rotary(x, 2, {.frequencies = {0, 0, 0}}) == x);
  x(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> came = rotary(x, 1);
  CHECK(came.row(1).array().isNaN().count() == 2);
  CHECK(came.array().isNaN().count() == 2);
}

TEST_CASE("rotary refuses what it cannot turn, before anything is written", "[rotary]") {
  const Matrix<float> x = Matrix<float>::Ones(3, 5);
  Matrix<float> even = Matrix<float>::Ones(3, 4), out = Matrix<float>::Zero(3, 4), small(2, 4);
  for (const thrown::BadCall& bad :
       {thrown::BadCall{"odd", [&] { rotary(x, 0); }, {"dimensions of rotary", "got 5"}},
        {"too many", [&] { rotary(x, 0, {.dimensions = 6}); }, {"got 6", "up to 5"}},
        {"base", [&] { rotary(even, 0, {.base = 0}); }, {"base of rotary"}},
        {"frequencies", [&] { rotary(even, 0, {.frequencies = {1}}); }, {"frequencies", "got 1, expected 2"}},
        {"NaN",
         [&] {
           rotary(even, 0, {.frequencies = {1, NAN}});
         },
         {"frequencies of rotary"}},
        {"rows", [&] { rotary(even, 0, small); }, {"rows of out", "got 2, expected 3"}},
        {"overlap", [&] { rotary(even.topRows(2), 0, even.bottomRows(2)); }, {"shares memory with x"}}}) {
    thrown::check_thrown(bad);
  }
  CHECK(out.isZero(0));
  CHECK(even.isOnes(0));
}
