// Both constructions of sparse patterns against stored values.
#include <phiattn/attention/attention.hpp>
#include <phiattn/constructions/sparse_pattern.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/json.hpp"

using namespace phiattn;
using golden::load;
using golden::matrix;

namespace {

/// max |actual - expected|, NaN if any entry is
double distance(const Matrix<double>& actual, const Matrix<double>& expected) {
  REQUIRE(actual.rows() == expected.rows());
  REQUIRE(actual.cols() == expected.cols());
  return (actual - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

}  // namespace

TEST_CASE("the exact-ratio construction equals the stored one, run through attention itself", "[golden]") {
  const nlohmann::json json = load("sparse_construction.json");
  const Matrix<double> target = matrix(json["A"]);
  const double margin = json["beta"];
  const double eps1 = json["eps1"];
  const SparsePattern pattern = exact_ratio_pattern(target, matrix(json["directions_raw"]), eps1, margin);

  // Sums of d = 12 products; a query is as large as its scores b, times the condition of two keys.
  const Matrix<double> queries = matrix(json["X1"]);
  const double size = queries.rowwise().norm().maxCoeff();
  const double error = 16 * 12 * kEpsilon * size;
  CHECK(distance(pattern.keys, matrix(json["U"])) <= 12 * kEpsilon);
  CHECK(distance(pattern.queries, queries) <= error);

  const Matrix<double> x = pattern.inputs();
  const Matrix<double> q = x * SparsePattern::query_weights(12), k = x * SparsePattern::key_weights(12);
  CHECK(q == pattern.queries);
  CHECK(k == pattern.keys);
  const Matrix<double> weights = attention_weights(ExponentialKernel<double>(), q, k, {.scale = 1});
  CHECK(distance(weights, matrix(json["M"])) <= 4 * error);

  const PatternError distance_to_target = pattern_error(pattern, target);
  CHECK(distance_to_target.ratio <= 4 * error);
  CHECK(std::log(distance_to_target.leakage) == Approx(json["max_leak_log"].get<double>()).epsilon(error));
  CHECK(distance_to_target.leakage <= eps1);
}

TEST_CASE("the random projection construction equals the stored one", "[golden]") {
  const nlohmann::json json = load("sparse_construction_jl.json");
  const Matrix<double> g = matrix(json["G"]), b = matrix(json["B"]);
  const SparsePattern pattern = random_projection_pattern(matrix(json["A"]), g, json["eps1"], 0);
  const double error = 16 * 12 * kEpsilon * b.maxCoeff() * g.squaredNorm() / 12;
  CHECK(distance(pattern.keys, g / std::sqrt(12.0)) <= 4 * kEpsilon * g.cwiseAbs().maxCoeff());
  CHECK(distance(pattern.queries, matrix(json["X1"])) <= error);
  CHECK(distance(pattern.queries * pattern.keys.transpose(), matrix(json["scores"])) <= error);
}
