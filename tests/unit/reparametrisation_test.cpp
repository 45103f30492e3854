// Reparametrisations: the attention they leave alone, and the numbers they are fitted to.

#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/fitting/balancing.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <limits>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/reparametrisations.hpp"

using namespace phiattn;
using namespace reparametrisations;

namespace {

/// S = mean x x^T
Matrix<double> second_moment(const Matrix<double>& x) {
  return x.transpose() * x / static_cast<double>(x.rows());
}

double mean_square(const Reparametrisation& r, const Matrix<double>& q, const Matrix<double>& k) {
  return r.queries(q).rowwise().squaredNorm().mean() + r.keys(k).rowwise().squaredNorm().mean();
}

}  // namespace

TEST_CASE("scores are those of the transformed vectors, a term a key and a term a query",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 1), k = tokens(9, 1, 2);
  for (const auto& [name, r] : all_kinds(q, k)) {
    CAPTURE(name);
    REQUIRE(r.dimension() == kD);
    Matrix<double> scores = 0.3 * r.queries(q) * r.keys(k).transpose();
    scores.rowwise() += r.key_log_weights(k, 0.3).transpose();
    scores.colwise() += r.query_log_factors(q, 0.3);
    CHECK(largest_difference(scores, 0.3 * q * k.transpose()) <= 1e-12);
  }
}

TEST_CASE("softmax attention is unchanged, with its normaliser put right by the query's term",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 1), k = tokens(9, 1, 2), v = some(9, 4);
  const AttentionOptions options{.scale = 0.3};
  KeyValueCache<ExponentialKernel<double>> cache({}, 4, options);
  cache.append(k, v);
  const Partial<double> due = cache.read_partial(q);
  for (const auto& [name, r] : all_kinds(q, k)) {
    CAPTURE(name);
    KeyValueCache<ExponentialKernel<double>> other({}, 4, options);
    other.append(r.keys(k), v, r.key_log_weights(k, 0.3));
    const Partial<double> came = other.read_partial(r.queries(q));
    CHECK(largest_difference(came.out, due.out) <= 1e-12);
    CHECK(largest_difference(came.log_normaliser + r.query_log_factors(q, 0.3), due.log_normaliser) <= 1e-12);
  }
}

TEST_CASE("key centring asks for no log-weights", "[reparametrisation]") {
  const Matrix<double> k = tokens(9, 1, 2);
  const auto r = key_centring(k);
  CHECK(r.key_log_weights(k, 0.3) == Vector<double>::Zero(9));
  CHECK(largest_difference(r.keys(k).colwise().mean(), RowVector<double>::Zero(kD)) <= 1e-14);
  CHECK(r.queries(k) == k);
}

TEST_CASE("composing is applying one after the other, and associative", "[reparametrisation]") {
  const Matrix<double> q = tokens(7, 0, 1), k = tokens(9, 1, 2);
  const auto kinds = all_kinds(q, k);
  for (const auto& [first_name, first] : kinds) {
    for (const auto& [second_name, second] : kinds) {
      CAPTURE(first_name, second_name);
      const auto both = first.then(second);
      CHECK(largest_difference(both.queries(q), second.queries(first.queries(q))) <= 1e-11);
      CHECK(largest_difference(both.keys(k), second.keys(first.keys(k))) <= 1e-11);
      const auto left = both.then(kinds[2].value), right = first.then(second.then(kinds[2].value));
      CHECK(largest_difference(left.queries(q), right.queries(q)) <= 1e-11);
      CHECK(largest_difference(left.key_log_weights(k, 0.3), right.key_log_weights(k, 0.3)) <= 1e-11);
      CHECK(largest_difference(left.query_log_factors(q, 0.3), right.query_log_factors(q, 0.3)) <= 1e-11);
    }
  }
}

TEST_CASE("balances give both sides the same second moments and are the least of their kind",
          "[reparametrisation]") {
  const Matrix<double> q = tokens(40, 0, 0.3),
                       k = tokens(50, 1, -0.2) * (some(kD, kD) + Matrix<double>::Identity(kD, kD));
  const auto diagonal = diagonal_balance(q, k);
  const auto full = full_balance(q, k, 1e-12);
  CHECK(largest_difference(second_moment(diagonal.queries(q)).diagonal(),
                           second_moment(diagonal.keys(k)).diagonal()) <= 1e-12);
  CHECK(largest_difference(second_moment(full.queries(q)), second_moment(full.keys(k))) <= 1e-9);
  CHECK(mean_square(full, q, k) < mean_square(diagonal, q, k) - 0.1);
  CHECK(mean_square(diagonal, q, k) < mean_square(key_centring(Matrix<double>::Zero(1, kD)), q, k) - 0.1);
  for (Index l = 0; l < kD; ++l) {
    CAPTURE(l);
    Vector<double> psi = Vector<double>::Ones(kD);
    psi(l) = 1.01;
    CHECK(mean_square(diagonal.then(Reparametrisation::diagonal(psi)), q, k) > mean_square(diagonal, q, k));
    Matrix<double> m = Matrix<double>::Identity(kD, kD);
    m(l, (l + 1) % kD) = 0.01;
    CHECK(mean_square(full.then(Reparametrisation::linear(m)), q, k) > mean_square(full, q, k));
  }
}

TEST_CASE("a balance does not depend on the scale, and leaves dead coordinates alone",
          "[reparametrisation]") {
  Matrix<double> q = tokens(40, 0, 0.3), k = tokens(50, 1, -0.2);
  for (const double c : {1e-3, 1e3}) {
    CHECK(diagonal_balance(c * q, c * k).queries(q).isApprox(diagonal_balance(q, k).queries(q), 1e-12));
    CHECK(full_balance(c * q, c * k).queries(q).isApprox(full_balance(q, k).queries(q), 1e-9));
  }
  q.col(1).setZero();
  k.col(4).setZero();
  const auto balance = diagonal_balance(q, k);
  CHECK(balance.keys(k).col(1) == k.col(1));
  CHECK(balance.queries(q).col(4) == q.col(4));
  CHECK(balance.queries(q).allFinite());
  CHECK(full_balance(q, k).queries(q).allFinite());
  CHECK(full_balance(Matrix<double>::Zero(2, kD), Matrix<double>::Zero(2, kD)).queries(q).isApprox(q, 1e-12));
}

TEST_CASE("wrong reparametrisations are rejected by name and size", "[reparametrisation]") {
  const Matrix<double> q = some(4, 3), k = some(5, 3);
  const auto three = key_centring(k), two = key_centring(k.leftCols(2));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_THROWS_AS(Reparametrisation::shift(q.row(0), k.row(0).head(2)), std::invalid_argument);
  REQUIRE_THROWS_WITH(Reparametrisation::shift(q.row(0), k.row(0).head(2)),
                      ContainsSubstring("size of b: got 2, expected 3 (size of a)"));
  REQUIRE_THROWS_WITH(Reparametrisation::shift(Vector<double>(0), Vector<double>(0)),
                      ContainsSubstring("dimension of the reparametrisation: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(Reparametrisation::shift(q.row(0), kNaN * k.row(0)), ContainsSubstring("not finite"));
  REQUIRE_THROWS_WITH(Reparametrisation::diagonal(Eigen::Vector3d(1, 0, 1)),
                      ContainsSubstring("psi(1): got 0"));
  REQUIRE_THROWS_WITH(Reparametrisation::diagonal(Eigen::Vector3d(1, 1, kNaN)),
                      ContainsSubstring("psi(2): got "));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(q), ContainsSubstring("columns of M: got 3, expected 4"));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(Matrix<double>(0, 0)), ContainsSubstring("rows of M: got 0"));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(Matrix<double>::Ones(3, 3)),
                      ContainsSubstring("M: singular"));
  REQUIRE_THROWS_WITH(Reparametrisation::linear(Matrix<double>::Constant(3, 3, kNaN)),
                      ContainsSubstring("M: singular"));
  REQUIRE_THROWS_WITH(three.then(two),
                      ContainsSubstring("dimension of the next reparametrisation: got 2, expected 3"));
  REQUIRE_THROWS_WITH(
      three.keys(k.leftCols(2)),
      ContainsSubstring("columns of x: got 2, expected 3 (dimension of the reparametrisation)"));
  REQUIRE_THROWS_WITH(key_centring(k.topRows(0)), ContainsSubstring("rows of k: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(centring(q.topRows(0), k), ContainsSubstring("rows of q: got 0, expected at least 1"));
  REQUIRE_THROWS_WITH(diagonal_balance(q, k.leftCols(2)),
                      ContainsSubstring("columns of q: got 3, expected 2"));
  REQUIRE_THROWS_WITH(full_balance(q, k, 0), ContainsSubstring("ridge: got 0"));
}
