// Where Gaussian closures are exact, and what the cap and the clamp do. That they are what they say: laws/far_memory_test.

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/fitting/balancing.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/gaussian_closure.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace phiattn;
using laws::gaussian;
using laws::kSeed;

namespace {

constexpr Index kD = 6;
constexpr Index kDv = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Matrix<double> exact(const Matrix<double>& q, const Matrix<double>& k, const Matrix<double>& v) {
  return attention(ExponentialKernel<double>(), q, k, v);
}

/// Relative error of attention over n keys drawn, with their values, from one Gaussian, of attention over infinitely many:
/// nu + K x, with covariance I of keys and values that are a linear map of the keys plus noise.
double error_of_gaussian_keys(Index n, std::uint64_t seed) {
  const Matrix<double> q = gaussian<double>(40, kD, seed, 0.4);
  const Matrix<double> k = gaussian<double>(n, kD, seed + 1);
  const Matrix<double> map = gaussian<double>(kD, kDv, seed + 2);
  const Matrix<double> v = k * map + gaussian<double>(n, kDv, seed + 3, 0.3);
  GaussianClosure<double> closure(kD, kDv, {.freezing = kInfinity}, {.scale = 1});
  closure.append(k, v);
  const auto came = closure.read_partial(q);
  const auto due = [&] {
    KeyValueCache<ExponentialKernel<double>> cache({}, kDv, {.scale = 1});
    cache.append(k, v);
    return cache.read_partial(q);
  }();
  return relative_frobenius_error(came.out, due.out) +
         (came.log_normaliser - due.log_normaliser).norm() / due.log_normaliser.norm();
}

}  // namespace

TEST_CASE("over Gaussian keys a closure's error falls as 1/sqrt(n)") {
  // The mean of some draws at each n; over a factor 64 of n it ought to fall by 8.
  double few = 0;
  double many = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 8; ++seed) {
    few += error_of_gaussian_keys(500, 10 * seed);
    many += error_of_gaussian_keys(32000, 10 * seed);
  }
  CAPTURE(kSeed, few / 8, many / 8);
  CHECK(few / many > 5);
  CHECK(few / many < 13);
  CHECK(many / 8 < 0.03);
}

TEST_CASE("one key, and equal keys, are exact") {
  const Matrix<double> q = gaussian<double>(7, kD, kSeed, 3);
  const Matrix<double> v = gaussian<double>(20, kDv, kSeed + 1);
  Matrix<double> k = gaussian<double>(20, kD, kSeed + 2, 3);
  k.bottomRows(19).rowwise() = k.row(0).eval();
  for (const Index n : {1, 2, 20}) {
    CAPTURE(kSeed, n);
    GaussianClosure<double> closure(kD, kDv);
    closure.append(k.topRows(n), v.topRows(n));
    const auto partial = closure.read_partial(q);
    CHECK(maximal_error(partial.out, exact(q, k.topRows(n), v.topRows(n))) < 1e-13);
    const Vector<double> due =
        (q * k.row(0).transpose()).array() / std::sqrt(double(kD)) + std::log(double(n));
    CHECK((partial.log_normaliser - due).cwiseAbs().maxCoeff() < 1e-12);
  }
}

TEST_CASE("a zero query attends to the mean of the values, to every key alike") {
  const Matrix<double> k = gaussian<double>(50, kD, kSeed, 3);
  const Matrix<double> v = gaussian<double>(50, kDv, kSeed + 1);
  GaussianClosure<double> closure(kD, kDv);
  closure.append(k, v);
  const auto partial = closure.read_partial(Matrix<double>::Zero(1, kD));
  CHECK(maximal_error(partial.out, v.colwise().mean()) < 1e-14);
  CHECK(partial.log_normaliser(0) == Approx(std::log(50.0)));
}

TEST_CASE("at its expansion point, the mean query of the centring, a closure is exact") {
  const Matrix<double> q = gaussian<double>(30, kD, kSeed).array() + 1.5;
  const Matrix<double> k = gaussian<double>(40, kD, kSeed + 1);
  const Matrix<double> v = gaussian<double>(40, kDv, kSeed + 2);
  const Matrix<double> mean = q.colwise().mean();
  GaussianClosure<double> centred(centring(q, k), kDv);
  centred.append(k, v);
  GaussianClosure<double> plain(kD, kDv);
  plain.append(k, v);
  CHECK(maximal_error(centred.read(mean), exact(mean, k, v)) < 1e-13);
  CHECK(maximal_error(plain.read(mean), exact(mean, k, v)) > 0.01);
}

TEST_CASE("a key shift leaves a closure alone but for its log-normaliser") {
  const Matrix<double> q = gaussian<double>(9, kD, kSeed, 2);
  const Matrix<double> k = gaussian<double>(40, kD, kSeed + 1, 2);
  const Matrix<double> v = gaussian<double>(40, kDv, kSeed + 2);
  const Matrix<double> shift = gaussian<double>(1, kD, kSeed + 3, 5);
  const Matrix<double> moved = k.rowwise() + shift.row(0);
  GaussianClosure<double> a(kD, kDv);
  GaussianClosure<double> b(kD, kDv);
  a.append(k, v);
  b.append(moved, v);
  const auto before = a.read_partial(q);
  const auto after = b.read_partial(q);
  CHECK(maximal_error(after.out, before.out) < 1e-12);
  const Vector<double> due = before.log_normaliser + q * shift.transpose() / std::sqrt(double(kD));
  CHECK((after.log_normaliser - due).cwiseAbs().maxCoeff() < 1e-12);
}

TEST_CASE(
    "without its cap a closure explodes where a few keys are far from all queries, with it it does not") {
  Matrix<double> q = gaussian<double>(200, kD, kSeed);
  Matrix<double> k = gaussian<double>(300, kD, kSeed + 1);
  q.col(0).array() += 3;
  k.block(0, 0, 5, 1).array() -= 15;
  const Matrix<double> v = k.leftCols(kDv);
  const auto error = [&](double freezing) {
    GaussianClosure<double> closure(kD, kDv, {.freezing = freezing});
    closure.append(k, v);
    return relative_frobenius_error(closure.read(q), exact(q, k, v));
  };
  const double uniform =
      relative_frobenius_error(attention(uniform_kernel<double>(), q, k, v), exact(q, k, v));
  CAPTURE(kSeed, error(0.35), error(kInfinity), uniform);
  CHECK(error(0.35) < uniform);
  CHECK(error(kInfinity) > 1.5 * uniform);
}

TEST_CASE("clamped outputs stay between the values seen so far, and are counted") {
  const Matrix<double> q = gaussian<double>(60, kD, kSeed, 5);
  const Matrix<double> k = gaussian<double>(60, kD, kSeed + 1, 2);
  const Matrix<double> v = k.leftCols(kDv);
  const AttentionOptions causal{.causality = Causality::causal};
  const auto outside = [&](const Matrix<double>& out) {
    Index rows = 0;
    for (Index t = 0; t < out.rows(); ++t) {
      const RowVector<double> lowest = v.topRows(t + 1).colwise().minCoeff();
      const RowVector<double> highest = v.topRows(t + 1).colwise().maxCoeff();
      rows += ((out.row(t).array() < lowest.array()) || (out.row(t).array() > highest.array())).any();
    }
    return rows;
  };
  Matrix<double> free(60, kDv), clamped(60, kDv);
  attention(GaussianClosure<double>(kD, kDv, {.freezing = 1}), q, k, v, free, causal);
  const auto status =
      attention(GaussianClosure<double>(kD, kDv, {.freezing = 1, .clamp = true}), q, k, v, clamped, causal);
  CHECK(outside(free) > 0);
  CHECK(outside(clamped) == 0);
  CHECK(status.clamped_rows == outside(free));
  CHECK(status.ok());
}

TEST_CASE("a mixture of one closure is that closure, and of one key each is exact") {
  const Matrix<double> q = gaussian<double>(9, kD, kSeed, 2);
  const Matrix<double> k = gaussian<double>(12, kD, kSeed + 1, 2);
  const Matrix<double> v = gaussian<double>(12, kDv, kSeed + 2);
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  ClosureMixture<double> one(k.topRows(1), plain, kDv);
  GaussianClosure<double> closure(kD, kDv);
  one.append(k, v);
  closure.append(k, v);
  CHECK(maximal_error(one.read(q), closure.read(q)) < 1e-13);
  ClosureMixture<double> all(k, plain, kDv);
  all.append(k, v);
  CHECK(maximal_error(all.read(q), exact(q, k, v)) < 1e-12);
}

TEST_CASE("closures name what does not fit") {
  using Catch::Contains;
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  CHECK_THROWS_WITH(GaussianClosure<float>(0, 1), Contains("dimension"));
  CHECK_THROWS_WITH(GaussianClosure<float>(kD, -1), Contains("dv: got -1, expected at least 0"));
  CHECK_THROWS_WITH(GaussianClosure<float>(kD, 1, {.freezing = -1}), Contains("freezing: got -1"));
  CHECK_THROWS_WITH(GaussianClosure<float>(kD, 1, {.freezing = std::nan("")}), Contains("freezing"));
  CHECK_THROWS_WITH(GaussianClosure<float>(kD, 1, {}, {.scale = 0}), Contains("scale"));
  CHECK_THROWS_WITH(ClosureMixture<float>(Matrix<double>(0, kD), plain, 1),
                    Contains("rows of centres: got 0"));
  CHECK_THROWS_WITH(ClosureMixture<float>(Matrix<double>::Zero(2, 5), plain, 1),
                    Contains("columns of centres: got 5"));
  GaussianClosure<float> closure(kD, kDv);
  CHECK_THROWS_WITH(closure.read(Matrix<float>::Zero(1, 5)), Contains("columns of q: got 5, expected 6"));
  CHECK_THROWS_WITH(closure.append(Matrix<float>::Zero(1, kD), Matrix<float>::Zero(1, 2)),
                    Contains("columns of v"));
  CHECK_THROWS_WITH(closure.merge(GaussianClosure<float>(kD, kDv, {}, {.scale = 2})), Contains("scale"));
  ClosureMixture<float> a(Matrix<double>::Zero(1, kD), plain, 1);
  CHECK_THROWS_WITH(a.merge(ClosureMixture<float>(Matrix<double>::Ones(1, kD), plain, 1)),
                    Contains("centres"));
  CHECK(closure.size() == 0);
}

TEST_CASE("a merged closure holds its outputs between the values of all its parts", "[closure]") {
  const Matrix<double> q = gaussian<double>(30, 4, kSeed, 8);
  const Matrix<double> k = gaussian<double>(40, 4, kSeed + 1);
  Matrix<double> v = k.leftCols(2);  // so that long queries lead beyond them
  v.bottomRows(20).array() += 10;
  const GaussianClosure<double> empty(4, 2, {.freezing = 5, .clamp = true});
  auto whole = empty, first = empty, second = empty;
  whole.append(k, v);
  first.append(k.topRows(20), v.topRows(20));
  second.append(k.bottomRows(20), v.bottomRows(20));
  first.merge(second);
  Matrix<double> out(30, 2), due(30, 2);
  const AttentionStatus status = first.read(q, out), expected = whole.read(q, due);
  CHECK(maximal_error(out, due) < 1e-10);
  CHECK(status.clamped_rows == expected.clamped_rows);
  CHECK(status.clamped_rows > 0);
  CHECK(due.maxCoeff() > 5);
}
