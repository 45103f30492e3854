// What is fitted to data is fitted in double; in float on request, to the precision of float.

#include <phiattn/analysis/rank.hpp>
#include <phiattn/analysis/regime.hpp>
#include <phiattn/constructions/sparse_pattern.hpp>
#include <phiattn/fitting/balancing.hpp>
#include <phiattn/fitting/favor_plusplus.hpp>
#include <phiattn/fitting/importance.hpp>
#include <phiattn/fitting/k_means.hpp>
#include <phiattn/fitting/landmarks.hpp>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr Index kD = 4;
constexpr double kTolerance = 1e-4;

/// As far as double and float agree.
double difference(const Matrix<double>& fitted, const Matrix<float>& in_float) {
  return (fitted - in_float.cast<double>()).cwiseAbs().maxCoeff();
}

}  // namespace

TEST_CASE("fitted in float, constants are those of double, rounded", "[fitting]") {
  const Matrix<float> q = gaussian_rows<float>(40, kD, 1), k = gaussian_rows<float>(50, kD, 2);
  CHECK(difference(gaussian_rows(40, kD, 1), q) < kTolerance);
  CHECK(difference(segment_means(k, 7), segment_means<float>(k, 7)) < kTolerance);
  CHECK(sampled_rows(k, 7, 3) == sampled_rows<float>(k, 7, 3).cast<double>());
  CHECK(difference(k_means(k, 3), k_means<float>(k, 3)) < kTolerance);
  CHECK(favor_plusplus_parameter<float>(q, k) == Approx(favor_plusplus_parameter(q, k)).epsilon(kTolerance));
  CHECK(difference(sample_importance_projection<double>(8, q, k).matrix(),
                   sample_importance_projection<float, float>(8, q, k).matrix()) < kTolerance);

  const auto centred = centring<float>(q, k).then(diagonal_balance<float>(q, k)).then(key_centring<float>(k));
  const auto reference = centring(q, k).then(diagonal_balance(q, k)).then(key_centring(k));
  CHECK(difference(reference.keys(k), centred.keys(k)) < kTolerance);
  CHECK(difference(reference.key_log_weights(k, 2), centred.key_log_weights(k, 2)) < kTolerance);
}

TEST_CASE("what analyses in double analyses in float", "[fitting]") {
  const Matrix<float> q = gaussian_rows<float>(20, kD, 1), equal = Matrix<float>::Ones(30, kD);
  CHECK(SpectrumOf<float>(equal).stable_rank() == Approx(1).epsilon(kTolerance));
  CHECK(SpectrumOf<float>(q).numerical_rank() == kD);
  CHECK(RegimeOf<float>(q, equal).effective_keys() == Approx(30).epsilon(kTolerance));

  const Matrix<float> target =
      3 * Matrix<float>::Identity(20, 20) + Matrix<float>::Identity(20, 20).rowwise().reverse();
  const auto pattern = exact_ratio_pattern<float>(target, gaussian_rows<float>(20, 64, 3), 0.1, 4);
  CHECK(pattern_error(pattern, target).ratio < kTolerance);
}
