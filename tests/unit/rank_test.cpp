// Ranks of matrices whose spectrum is known, and of the weights of attention.
#include <phiattn/analysis/rank.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/projection/directions.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr std::uint64_t kSeed = 2021;

Matrix<double> gaussian(Index rows, Index cols, std::uint64_t stream) {
  const Philox random(kSeed, stream);
  Matrix<double> x(rows, cols);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = random.normal(static_cast<std::uint64_t>(i));
  return x;
}

/// U diag(s) V^T with U and V of orthonormal columns: its singular values are s.
Matrix<double> with_singular_values(const Vector<double>& s, Index rows, Index cols) {
  const auto columns = [&](Index n, std::uint64_t stream) -> Matrix<double> {
    return sample_directions(s.size(), n, Directions::orthogonal, Philox(kSeed, stream)).transpose();
  };
  return columns(rows, 1) * s.asDiagonal() * columns(cols, 2).transpose();
}

constexpr Index kD = 16;
using Positive = AnyFeatureMap<double, LogFeatureMapTag>;

Positive random_features(Index m) {
  return PositiveRandomFeatures<double>(sample_projection<double>(m, kD, {.seed = kSeed}));
}

/// softmax(Q K^T / sqrt(d)) by its definition; what is compiled is one memory, that of feature maps.
Matrix<double> softmax_weights(const Matrix<double>& q, const Matrix<double>& k, bool causal = false) {
  Matrix<double> weights = (q * k.transpose() / std::sqrt(static_cast<double>(kD))).array().exp();
  if (causal) weights.triangularView<Eigen::StrictlyUpper>().setZero();
  for (Index i = 0; i < weights.rows(); ++i) weights.row(i) /= weights.row(i).sum();
  return weights;
}

}  // namespace

TEST_CASE("a spectrum holds the singular values of the matrix", "[rank]") {
  const Vector<double> s = Vector<double>::LinSpaced(7, 7, 1);
  for (const auto& [rows, cols] : {std::pair(7, 7), std::pair(20, 7), std::pair(9, 30)}) {
    const Spectrum spectrum(with_singular_values(s, rows, cols));
    REQUIRE(spectrum.values().size() == std::min(rows, cols));
    CHECK((spectrum.values().head(7) - s).cwiseAbs().maxCoeff() < 1e-13);
    CHECK(spectrum.numerical_rank() == 7);
  }
}

TEST_CASE("the ranks of a known spectrum", "[rank]") {
  Vector<double> s(4);
  s << 4, 2, 1, 1e-3;
  const Spectrum spectrum(with_singular_values(s, 6, 5));
  CHECK(spectrum.numerical_rank() == 4);
  CHECK(spectrum.numerical_rank(1e-3) == 3);
  CHECK(spectrum.numerical_rank(0.3) == 2);
  CHECK(spectrum.stable_rank() == Approx((16 + 4 + 1 + 1e-6) / 16));
  const Vector<double> p = s / s.sum();
  CHECK(spectrum.entropy_rank() == Approx(std::exp(-(p.array() * p.array().log()).sum())));
  // 16, 4 and 1 of 21: 76.2 %, 95.2 % and 100 %
  CHECK(spectrum.energy_rank(0.76) == 1);
  CHECK(spectrum.energy_rank(0.77) == 2);
  CHECK(spectrum.energy_rank(0.95) == 2);
  CHECK(spectrum.energy_rank() == 3);
}

TEST_CASE("extremes of the ranks: equal singular values, one, none", "[rank]") {
  const Spectrum identity(Matrix<float>::Identity(9, 9));
  CHECK(identity.numerical_rank() == 9);
  CHECK(identity.stable_rank() == Approx(9));
  CHECK(identity.entropy_rank() == Approx(9));
  CHECK(identity.energy_rank() == 9);
  CHECK(identity.energy_rank(1) == 9);
  const Spectrum uniform(Matrix<double>::Constant(5, 8, 0.125));
  CHECK(uniform.numerical_rank() == 1);
  CHECK(uniform.stable_rank() == Approx(1));
  CHECK(uniform.entropy_rank() == Approx(1));
  CHECK(uniform.energy_rank() == 1);
  const Spectrum zero(Matrix<double>::Zero(3, 2));
  CHECK(zero.numerical_rank() == 0);
  CHECK(zero.stable_rank() == 0);
  CHECK(zero.entropy_rank() == 0);
  CHECK(zero.energy_rank() == 0);
}

TEST_CASE("ranks do not depend on the size of the entries", "[rank]") {
  Vector<double> s(3);
  s << 3, 2, 1e-2;
  const Matrix<double> a = with_singular_values(s, 5, 5);
  const Spectrum one(a);
  for (const double factor : {1e-200, 1e200}) {
    const Spectrum other(factor * a);
    CHECK(other.numerical_rank() == one.numerical_rank());
    CHECK(other.stable_rank() == Approx(one.stable_rank()));
    CHECK(other.entropy_rank() == Approx(one.entropy_rank()));
    CHECK(other.energy_rank() == one.energy_rank());
  }
}

TEST_CASE("a spectrum refuses what has none", "[rank]") {
  CHECK_THROWS_WITH(Spectrum(Matrix<double>(0, 3)), ContainsSubstring("rows of weights: got 0"));
  CHECK_THROWS_WITH(Spectrum(Matrix<double>(3, 0)), ContainsSubstring("columns of weights: got 0"));
  Matrix<double> bad = Matrix<double>::Ones(3, 3);
  bad(1, 2) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(Spectrum(bad), ContainsSubstring("not finite"));
  const Spectrum good(Matrix<double>::Ones(3, 3));
  CHECK_THROWS_AS(good.energy_rank(0), std::invalid_argument);
  CHECK_THROWS_AS(good.energy_rank(1.1), std::invalid_argument);
}

TEST_CASE("linear attention saturates at its number of features, softmax attention at nothing", "[rank]") {
  CAPTURE(kSeed);
  constexpr Index kMonomials = 153;  // C(18, 2)
  for (const Index n : {64, 256, 512}) {
    CAPTURE(n);
    const Matrix<double> q = gaussian(n, kD, 3), k = gaussian(n, kD, 4);
    const auto rank = [&](const Positive& map) {
      return Spectrum(attention_weights(map, q, k)).numerical_rank();
    };
    CHECK(Spectrum(softmax_weights(q, k)).numerical_rank() == n);
    for (const Index m : {16, 64, 256}) CHECK(rank(random_features(m)) == std::min(m, n));
    CHECK(rank(EluFeatures<double>(kD)) == kD);
    const Matrix<double> x = q * k.transpose() / 4;
    CHECK(Spectrum((1 + x.array() + x.array().square() / 2).matrix()).numerical_rank() ==
          std::min(kMonomials, n));
  }
}

TEST_CASE("causal weights have full rank, those of 16 features too", "[rank]") {
  constexpr AttentionOptions kCausal{.causality = Causality::causal};
  const Matrix<double> x = gaussian(256, kD, 5);
  CHECK(Spectrum(softmax_weights(x, x, true)).numerical_rank() == 256);
  CHECK(Spectrum(attention_weights(random_features(16), x, x, kCausal)).numerical_rank() == 256);
  // Where keys do not resemble their queries the least singular values are too small to tell from 0 in double, although
  // the determinant, the product of the diagonal, is not 0.
  const Matrix<double> w = softmax_weights(gaussian(256, kD, 3), gaussian(256, kD, 4), true);
  CHECK(w.diagonal().minCoeff() > 0);
  CHECK(Spectrum(w).numerical_rank() < 256);
  CHECK(Spectrum(w).numerical_rank() > 240);
}
