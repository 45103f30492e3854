// Projections: what is stored, what project() gives, what is rejected.

#include <phiattn/projection/projection.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

/// Every number equal.
bool same(const Matrix<double>& a, const Matrix<double>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
}

}  // namespace

TEST_CASE("the rows of a projection are its directions times its radii", "[projection]") {
  for (const Directions directions : {Directions::iid, Directions::orthogonal}) {
    for (const Radii rule : {Radii::chi, Radii::fixed, Radii::quantile, Radii::midpoint, Radii::stratified}) {
      CAPTURE(kSeed, static_cast<int>(directions), static_cast<int>(rule));
      const ProjectionOptions options{directions, rule, false, kSeed};
      const Matrix<double> omega = sample_projection<double>(20, 8, options).matrix();
      for (Index i = 0; directions == Directions::orthogonal && i < 8; ++i) {
        for (Index j = 0; j < i; ++j) CHECK(std::abs(omega.row(i).dot(omega.row(j))) <= 1e-11);
      }
      const Vector<double> norms = omega.rowwise().norm();
      if (rule == Radii::fixed) CHECK((norms.array() - std::sqrt(8.0)).abs().maxCoeff() <= 1e-12);
      if (rule == Radii::quantile || rule == Radii::midpoint) {
        const Vector<double> due = sample_radii(20, 8, rule, Philox(0));
        CHECK((norms - due).cwiseAbs().maxCoeff() <= 1e-12);
      }
      if (rule != Radii::chi && rule != Radii::fixed) CHECK(std::is_sorted(norms.begin(), norms.end()));
    }
  }
}

TEST_CASE("antithetic rows are exact negatives, and an odd one stays alone", "[projection]") {
  for (const Index m : {1, 2, 7, 12}) {
    CAPTURE(kSeed, m);
    const auto omega = sample_projection<double>(m, 4, {.seed = kSeed});
    const Matrix<double> rows = omega.matrix();
    REQUIRE(omega.rows() == m);
    REQUIRE(omega.cols() == 4);
    CHECK(same(rows.bottomRows(m / 2), -rows.topRows(m / 2)));
    const Matrix<double> x =
        Matrix<double>::NullaryExpr(3, 4, [](Index i, Index j) { return double(i) - 0.3 * double(j); });
    Matrix<double> out(3, m);
    omega.project(x, out);
    CHECK(same(out.rightCols(m / 2), -out.leftCols(m / 2)));
  }
}

TEMPLATE_TEST_CASE("project is x times matrix transposed", "[projection]", float, double) {
  using S = TestType;
  for (const bool antithetic : {false, true}) {
    for (const Index n : {0, 1, 5}) {
      CAPTURE(kSeed, antithetic, n);
      const auto omega = sample_projection<S>(9, 6, {.antithetic = antithetic, .seed = kSeed});
      const Matrix<S> x =
          Matrix<S>::NullaryExpr(n, 6, [](Index i, Index j) { return S(1 + i) / S(2 + j) - S(j); });
      const Matrix<S> rows = omega.matrix();
      Matrix<S> wide = Matrix<S>::Constant(n + 2, 12, S(-7));
      omega.project(x, wide.block(1, 2, n, 9));  // any block of a row-major matrix
      for (Index t = 0; t < wide.rows(); ++t) {
        for (Index i = 0; i < wide.cols(); ++i) {
          if (t < 1 || t > n || i < 2 || i >= 11) {
            CHECK(wide(t, i) == S(-7));
            continue;
          }
          double due = 0;
          double size = 0;
          for (Index j = 0; j < 6; ++j) {
            const double term = double(x(t - 1, j)) * double(rows(i - 2, j));
            due += term;
            size += std::abs(term);
          }
          CHECK(std::abs(double(wide(t, i)) - due) <= 6 * std::numeric_limits<S>::epsilon() * size);
        }
      }
    }
  }
}

TEST_CASE("a projection is a function of its size and options", "[projection]") {
  const ProjectionOptions options{.seed = kSeed};
  const Matrix<double> omega = sample_projection<double>(11, 5, options).matrix();
  CHECK(same(sample_projection<double>(11, 5, options).matrix(), omega));
  CHECK(same(sample_projection<float>(11, 5, options).matrix().cast<double>(),
             omega.cast<float>().cast<double>()));
  CHECK_FALSE(same(sample_projection<double>(11, 5, {.seed = kSeed + 1}).matrix(), omega));
}

TEST_CASE("a projection is made of any matrix expression, and copies share it", "[projection]") {
  static_assert(std::is_nothrow_copy_constructible_v<Projection<float>>);
  static_assert(std::is_copy_assignable_v<Projection<float>>);
  static_assert(!std::is_convertible_v<const Matrix<float>&, Projection<float>>);
  const Eigen::MatrixXd omega =
      Eigen::MatrixXd::NullaryExpr(3, 2, [](Index i, Index j) { return double(2 * i - j); });
  CHECK(same(Projection<double>(omega).matrix(), omega));
  CHECK(same(Projection<double>(2 * omega.topRows(2)).matrix(), 2 * omega.topRows(2)));
  CHECK(same(Projection<double>(omega.cast<float>()).matrix(), omega));
  CHECK(same(Projection<float>(omega.cast<Eigen::bfloat16>()).matrix().cast<double>(), omega));

  Projection<double> original(omega);
  const Projection<double> copy(original);
  original = Projection<double>(-omega);
  CHECK(same(copy.matrix(), omega));
  CHECK(same(original.matrix(), -omega));
}

TEST_CASE("wrong shapes are rejected by name and size", "[projection]") {
  REQUIRE_THROWS_AS(sample_projection<float>(0, 4), std::invalid_argument);
  REQUIRE_THROWS_WITH(sample_projection<float>(0, 4),
                      ContainsSubstring("rows of omega (m): got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(sample_projection<float>(4, -1),
                      ContainsSubstring("columns of omega (d): got -1, expected at least 1"));
  REQUIRE_THROWS_WITH(Projection<double>(Matrix<double>(0, 3)),
                      ContainsSubstring("rows of omega: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(Projection<double>(Matrix<double>(3, 0)),
                      ContainsSubstring("columns of omega: got 0, expected at least 1"));

  const auto omega = sample_projection<double>(6, 4);
  const Matrix<double> x = Matrix<double>::Zero(2, 4);
  Matrix<double> out(2, 6), narrow(2, 5), tall(3, 6);
  REQUIRE_THROWS_AS(omega.project(x.leftCols(3), out), std::invalid_argument);
  REQUIRE_THROWS_WITH(omega.project(x.leftCols(3), out),
                      ContainsSubstring("columns of x: got 3, expected 4"));
  REQUIRE_THROWS_WITH(omega.project(x, narrow), ContainsSubstring("columns of out: got 5, expected 6"));
  REQUIRE_THROWS_WITH(omega.project(x, tall), ContainsSubstring("rows of out: got 3, expected 2"));
}
