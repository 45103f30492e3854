// Simplex and Hadamard directions: their shape, what they estimate, and how well. Bounds are four standard
// errors.

#include <phiattn/projection/hadamard-inl.hpp>
#include <phiattn/projection/projection.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/moments.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

/// A vector of norm z, along the first axis or along none.
RowVector<double> sum_of_query_and_key(Index d, double z, bool along_axis) {
  RowVector<double> x = RowVector<double>::Zero(d);
  x(0) = 1;
  for (Index j = 0; j < d && !along_axis; ++j)
    x(j) = 1.1 + 0.3 * static_cast<double>(j % 3) - 0.5 * (j % 2 == 1);
  return z / x.norm() * x;
}

/// mean_i exp(omega_i . x - |x|^2 / 2), which estimates 1, in many projections of seeds of their own.
Moments estimates(Index m, ProjectionOptions options, const RowVector<double>& x, int draws) {
  std::vector<double> all;
  Matrix<double> products(1, m);
  for (int draw = 0; draw < draws; ++draw) {
    options.seed = kSeed + static_cast<std::uint64_t>(draw);
    sample_projection<double>(m, x.size(), options).project(x, products);
    all.push_back((products.array() - x.squaredNorm() / 2).exp().mean());
  }
  return Moments(all);
}

Matrix<double> hadamard_rows(Index h, Index d, Radii radii = Radii::chi) {
  return sample_projection<double>(h, d, {Directions::hadamard, radii, false, kSeed}).matrix();
}

/// max |a_ij| off the diagonal
double off_diagonal(Matrix<double> a) {
  a.diagonal().setZero();
  return a.cwiseAbs().maxCoeff();
}

}  // namespace

TEST_CASE("an orthonormal block becomes the stored simplex", "[projection][golden]") {
  const auto json = golden::load("simplex_block.json");
  Matrix<double> rows = Matrix<double>::Identity(5, 5);
  detail::make_simplex<double>(rows);
  CHECK((rows - golden::matrix(json["rows"])).cwiseAbs().maxCoeff() <= 1e-15);
  CHECK((rows * rows.transpose() - golden::matrix(json["gram"])).cwiseAbs().maxCoeff() <= 1e-15);
}

TEST_CASE("simplex directions are unit rows at equal angles in blocks, the last of them cut",
          "[projection]") {
  for (const Index d : {1, 2, 3, 16}) {
    const Index h = 2 * d + (d + 1) / 2;
    CAPTURE(kSeed, h, d);
    const Matrix<double> rows = sample_directions(h, d, Directions::simplex, Philox(kSeed));
    REQUIRE(rows.rows() == h);
    CHECK((rows.rowwise().norm().array() - 1).abs().maxCoeff() <= 1e-12);
    for (Index i = 0; i < h; ++i) {
      for (Index j = i - i % d; j < i; ++j) {
        CHECK(std::abs(rows.row(i).dot(rows.row(j)) + 1 / static_cast<double>(d - 1)) <= 1e-12);
      }
    }
    // Rows are the same, however many follow.
    const Matrix<double> fewer = sample_directions(h - 1, d, Directions::simplex, Philox(kSeed));
    CHECK(fewer == rows.topRows(h - 1));
  }
}

TEST_CASE("the kernel estimate of simplex directions is unbiased", "[projection]") {
  // m = 10 leaves a partial block at d = 3 and at d = 8.
  for (const Index d : {1, 2, 3, 8}) {
    for (const Radii radii : {Radii::chi, Radii::stratified}) {
      for (const bool antithetic : {false, true}) {
        for (const bool along_axis : {false, true}) {
          CAPTURE(kSeed, d, static_cast<int>(radii), antithetic, along_axis);
          const Moments estimate = estimates(10, {Directions::simplex, radii, antithetic, 0},
                                             sum_of_query_and_key(d, 1.2, along_axis), 800);
          CHECK(std::abs(estimate.mean - 1) <= 4 * estimate.error);
          CHECK(estimate.error < 0.03);
        }
      }
    }
  }
}

TEST_CASE("simplex directions lower the variance without antithetic rows and raise it with them",
          "[projection]") {
  constexpr Index kD = 8;
  CAPTURE(kSeed);
  const auto moments = [](Index m, Directions directions, bool antithetic) {
    return estimates(m, {directions, Radii::chi, antithetic, 0}, sum_of_query_and_key(kD, 0.5, false), 6000);
  };
  const auto check_lower = [](const Moments& lower, const Moments& higher) {
    const double error = std::hypot(lower.variance_error, higher.variance_error);
    CAPTURE(lower.variance, higher.variance, error);
    CHECK(lower.variance <= higher.variance - 4 * error);
  };
  check_lower(moments(kD, Directions::simplex, false), moments(kD, Directions::orthogonal, false));
  check_lower(moments(2 * kD, Directions::orthogonal, true), moments(2 * kD, Directions::simplex, true));
}

TEMPLATE_TEST_CASE("the fast transforms are products with Walsh-Hadamard matrices and signs", "[projection]",
                   float, double) {
  using S = TestType;
  constexpr Index kTokens = detail::kPacket<S>;
  for (const Index size : {16, 32, 64, 128, 256, 512}) {
    CAPTURE(size);
    const Matrix<S> h = Matrix<S>::NullaryExpr(size, size, [](Index i, Index j) {
      return std::popcount(static_cast<std::uint64_t>(i & j)) % 2 == 0 ? S(1) : S(-1);
    });
    const auto sign = [](Index i, Index j) { return (i * i + 3 * i * j + j) % 7 < 3 ? S(-1) : S(1); };
    const Matrix<S> signs = Matrix<S>::NullaryExpr(3, size, sign);
    const Vector<S> radii = Vector<S>::NullaryExpr(size, [](Index i) { return S(1 + i % 3); });
    const Matrix<S> x =
        Matrix<S>::NullaryExpr(size, kTokens, [](Index i, Index j) { return S((7 * i + 3 * j) % 3 - 1); });
    Matrix<S> y(size, kTokens);
    detail::HadamardColumn<S>(y.data(), size).transform(x.data(), signs.data(), radii.data());
    const auto d = [&](Index row) { return signs.row(row).asDiagonal(); };
    const Matrix<S> third = h * (d(2) * x), second = h * (d(1) * third), first = h * (d(0) * second);
    REQUIRE((h.cwiseAbs() * third.cwiseAbs()).maxCoeff() * static_cast<S>(size) < S(1 << 24));
    CHECK(y == radii.asDiagonal() * first);  // sums of small whole numbers are exact
  }
}

TEST_CASE("Hadamard rows are orthogonal in blocks, with radii of the padded dimension", "[projection]") {
  for (const Index d : {16, 32, 64, 128}) {
    CAPTURE(kSeed, d);
    const Matrix<double> fixed = hadamard_rows(d + d / 2, d, Radii::fixed);
    CHECK((fixed.rowwise().norm().array() - std::sqrt(static_cast<double>(d))).abs().maxCoeff() <= 1e-12);
    for (const Matrix<double>& block :
         {Matrix<double>(fixed.topRows(d)), Matrix<double>(fixed.bottomRows(d / 2))}) {
      CHECK(off_diagonal(block * block.transpose()) <= 1e-11);
    }
    CHECK(off_diagonal(fixed * fixed.transpose()) > 1e-3);  // the two blocks are independent
    const Vector<double> radii = sample_radii(d, d, Radii::chi, Philox(kSeed, 1));
    CHECK((hadamard_rows(d, d).rowwise().norm() - radii).cwiseAbs().maxCoeff() <= 1e-12);
  }
  // d = 33 is cut from D = 64: what is left of 64 orthonormal rows times 8 has columns of norm 8 that are
  // orthogonal.
  const Matrix<double> cut = hadamard_rows(64, 33, Radii::fixed);
  CHECK((cut.transpose() * cut - 64 * Matrix<double>::Identity(33, 33)).cwiseAbs().maxCoeff() <= 1e-11);
}

TEMPLATE_TEST_CASE("project is x times matrix transposed for Hadamard directions", "[projection]", float,
                   double) {
  using S = TestType;
  for (const Index d : {9, 16, 40, 64}) {
    for (const Index m : {1, 7, 64, 150}) {
      for (const Index n : {0, 1, 5, 37}) {
        CAPTURE(kSeed, d, m, n);
        const auto omega = sample_projection<S>(
            m, d, {.directions = Directions::hadamard, .antithetic = m % 2 == 1, .seed = kSeed});
        REQUIRE(omega.rows() == m);
        REQUIRE(omega.cols() == d);
        const Matrix<S> rows = omega.matrix();
        const Matrix<S> x =
            Matrix<S>::NullaryExpr(n, d, [](Index i, Index j) { return S(1 + i) / S(2 + j) - S(j % 5); });
        Matrix<S> wide = Matrix<S>::Constant(n + 2, m + 3, S(-7));
        omega.project(x, wide.block(1, 2, n, m));
        const Matrix<double> due = x.template cast<double>() * rows.template cast<double>().transpose();
        const Matrix<double> size = x.template cast<double>().rowwise().norm() *
                                    rows.template cast<double>().rowwise().norm().transpose();
        const Matrix<double> error = (wide.block(1, 2, n, m).template cast<double>() - due).cwiseAbs();
        CHECK((error.array() <=
               32 * static_cast<double>(std::numeric_limits<S>::epsilon()) * (size.array() + 1))
                  .all());
        wide.block(1, 2, n, m).setConstant(S(-7));
        CHECK((wide.array() == S(-7)).all());
      }
    }
  }
}

TEST_CASE("Hadamard projections are antithetic where asked to be, and keep tokens apart", "[projection]") {
  const auto omega = sample_projection<float>(101, 20, {.directions = Directions::hadamard, .seed = kSeed});
  Matrix<float> x =
      Matrix<float>::NullaryExpr(40, 20, [](Index i, Index j) { return float((i * 7 + j * 5) % 13 - 6); });
  Matrix<float> out(40, 101), alone(1, 101), with_nan(40, 101);
  omega.project(x, out);
  CHECK(out.rightCols(50) == -out.leftCols(50));
  CHECK(omega.matrix().bottomRows(50) == -omega.matrix().topRows(50));
  omega.project(x.row(33), alone);
  CHECK(alone == out.row(33));
  x(3, 0) = std::numeric_limits<float>::quiet_NaN();
  omega.project(x, with_nan);
  CHECK(with_nan.row(3).array().isNaN().all());
  CHECK(with_nan.topRows(3) == out.topRows(3));
  CHECK(with_nan.bottomRows(36) == out.bottomRows(36));
}

TEST_CASE("Hadamard directions are orthogonal ones where there are fewer than 16 signs", "[projection]") {
  const auto rows = [](Index d, Directions directions) {
    return sample_projection<double>(20, d, {.directions = directions, .seed = kSeed}).matrix();
  };
  for (const Index d : {1, 3, 8}) {
    CAPTURE(d);
    CHECK(rows(d, Directions::hadamard) == rows(d, Directions::orthogonal));
  }
  CHECK(rows(9, Directions::hadamard) != rows(9, Directions::orthogonal));
}

TEST_CASE("the kernel estimate of Hadamard directions is biased by less than 1e-3 at |q + k| = 1",
          "[projection]") {
  for (const Index d : {9, 33, 64}) {
    for (const bool along_axis : {false, true}) {
      CAPTURE(kSeed, d, along_axis);
      const Moments estimate =
          estimates(256, {.directions = Directions::hadamard}, sum_of_query_and_key(d, 1, along_axis), 2000);
      CHECK(std::abs(estimate.mean - 1) <= 1e-3 + 4 * estimate.error);
      CHECK(estimate.error < 1e-3);
    }
  }
}

TEST_CASE("every row of simplex and Hadamard directions has covariance I", "[projection]") {
  constexpr int kDraws = 2000;
  for (const Directions directions : {Directions::simplex, Directions::hadamard}) {
    for (const Index d : {9, 16}) {
      std::vector<std::vector<double>> samples(static_cast<std::size_t>(3 * d * d));
      for (int draw = 0; draw < kDraws; ++draw) {
        const ProjectionOptions options{directions, Radii::chi, false,
                                        kSeed + static_cast<std::uint64_t>(draw)};
        const Matrix<double> omega = sample_projection<double>(d, d, options).matrix();
        auto sample = samples.begin();
        for (const Index i : {Index{0}, d / 2, d - 1}) {
          for (Index a = 0; a < d; ++a) {
            for (Index b = 0; b < d; ++b) (sample++)->push_back(omega(i, a) * omega(i, b));
          }
        }
      }
      double worst = 0;  // in standard errors
      for (std::size_t s = 0; s < samples.size(); ++s) {
        const auto entry = static_cast<Index>(s) % (d * d);
        const Moments moments(samples[s]);
        worst = std::max(worst, std::abs(moments.mean - (entry / d == entry % d ? 1 : 0)) / moments.error);
      }
      CAPTURE(kSeed, static_cast<int>(directions), d);
      CHECK(worst <= 5);  // of up to 768 entries
    }
  }
}

TEST_CASE("Hadamard projections are a function of their size and options", "[projection]") {
  const auto rows = [](std::uint64_t seed) {
    return sample_projection<float>(70, 64, {.directions = Directions::hadamard, .seed = seed}).matrix();
  };
  CHECK(rows(kSeed) == rows(kSeed));
  CHECK(rows(kSeed) != rows(kSeed + 1));
}

TEST_CASE("Hadamard directions alone are refused: they are not stored", "[projection]") {
  REQUIRE_THROWS_AS(sample_directions(4, 16, Directions::hadamard, Philox(kSeed)), std::invalid_argument);
  REQUIRE_THROWS_WITH(sample_directions(4, 16, Directions::hadamard, Philox(kSeed)),
                      ContainsSubstring("hadamard rows are not stored; sample_projection() makes them"));
  const auto omega = sample_projection<double>(40, 20, {.directions = Directions::hadamard});
  const Matrix<double> x = Matrix<double>::Zero(2, 20);
  Matrix<double> out(2, 39);
  REQUIRE_THROWS_WITH(omega.project(x, out), ContainsSubstring("columns of out: got 39, expected 40"));
  REQUIRE_THROWS_WITH(omega.project(x.leftCols(16), out),
                      ContainsSubstring("columns of x: got 16, expected 20"));
}
