// Maps made of a function of one number, after a linear layer or not: their values, their ends and their zeros.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/dpfp.hpp>
#include <phiattn/feature_maps/elementwise.hpp>
#include <phiattn/feature_maps/hedgehog.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

/// Attention is compiled once for all of them.
template <class S>
using AnyLogMap = AnyFeatureMap<S, LogFeatureMapTag>;

template <class S>
Matrix<S> some(Index rows, Index cols, double seed, double size = 1) {
  return Matrix<S>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return static_cast<S>(size * std::sin(seed + 2.3 * static_cast<double>(i * cols + j)));
  });
}

double distance(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

/// Log-features with their scales put back.
template <class S>
Matrix<S> log_features(const AnyLogMap<S>& map, const Matrix<S>& x) {
  Matrix<S> features(x.rows(), map.feature_dimension());
  Vector<S> log_scale(x.rows());
  map.features(Side::keys, x, 0, {features, log_scale});
  return features.colwise() + log_scale;
}

/// The rounding of a logarithm, and of the feature whose logarithm it is.
template <class S>
double rounding(double log) {
  return 4 * static_cast<double>(std::numeric_limits<S>::epsilon()) * (1 + std::abs(log));
}

template <class S>
void check_log_function(const AnyLogMap<S>& map, const std::function<long double(long double)>& log_f) {
  const S lowest = -std::sqrt(std::numeric_limits<S>::max());
  Matrix<S> x(1, 17);
  x << lowest, -1e30F, -1e4F, -200, -80, -20, -3, -1e-3F, 0, 1e-30F, 1e-3F, 3, 20, 80, 1e4F, 1e30F, -lowest;
  const Matrix<S> came = log_features(map, x);
  for (Index i = 0; i < x.cols(); ++i) {
    CAPTURE(x(i));
    const auto due = static_cast<double>(log_f(static_cast<long double>(x(i))));
    if (std::isinf(due)) {
      CHECK(static_cast<double>(came(i)) == due);
    } else {
      CHECK(std::abs(static_cast<double>(came(i)) - due) <= rounding<S>(due));
    }
  }
  x(3) = std::numeric_limits<S>::quiet_NaN();
  CHECK(std::isnan(log_features(map, x)(3)));
}

}  // namespace

TEMPLATE_TEST_CASE("relu, squared relu, softplus and sigmoid hand over their logarithms, from -1e19 to 1e19",
                   "[feature_maps]", float, double) {
  using S = TestType;
  const auto log_relu = [](long double x) { return x > 0 ? std::log(x) : -INFINITY; };
  check_log_function<S>(relu_features<S>(17), log_relu);
  check_log_function<S>(squared_relu_features<S>(17), [&](long double x) { return 2 * log_relu(x); });
  check_log_function<S>(softplus_features<S>(17), [](long double x) {
    if (x < -40) return x;  // less e^x / 2
    return std::log(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
  });
  check_log_function<S>(sigmoid_features<S>(17), [](long double x) {
    return x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x));
  });
}

TEST_CASE("a layer is a dimension, a matrix, a projection, or one with a bias", "[feature_maps]") {
  const Matrix<double> w = some<double>(7, 5, 1), x = some<double>(4, 5, 2);
  const RowVector<double> b = some<double>(1, 7, 3);
  const auto relu = [](const Matrix<double>& y) { return Matrix<double>(y.cwiseMax(0)); };
  const Matrix<double> product = x * w.transpose();
  CHECK(distance(relu_features<double>(5).key_features(x), relu(x)) < 1e-15);
  CHECK(distance(relu_features<double>(w).key_features(x), relu(product)) < 1e-14);
  CHECK(distance(relu_features<double>(Projection<double>(w)).key_features(x), relu(product)) < 1e-14);
  CHECK(distance(relu_features<double>({w, b}).key_features(x), relu(product.rowwise() + b)) < 1e-14);
  CHECK(distance(relu_features<double>({Index{5}, x.row(0).transpose()}).key_features(x),
                 relu(x.rowwise() + x.row(0))) < 1e-15);
  CHECK(relu_features<double>(w).dimension() == 5);
  CHECK(relu_features<double>(w).feature_dimension() == 7);
  CHECK(relu_features<double>(w).default_scale(5) == 1);

  CHECK_THROWS_AS(relu_features<float>(0), std::invalid_argument);
  CHECK_THROWS_AS(relu_features<double>(Matrix<double>(0, 4)), std::invalid_argument);
  CHECK_THROWS_WITH(relu_features<double>({w, b.head(6)}),
                    ContainsSubstring("bias") && ContainsSubstring("6"));
  CHECK_THROWS_WITH(relu_features<double>(Projection<double>(w, b)), ContainsSubstring("log-weights"));
}

TEST_CASE("relu features of normal frequencies estimate the arc-cosine kernel", "[feature_maps]") {
  const Index m = 1 << 14;
  const auto map =
      relu_features<double>(sample_projection<double>(m, 4, {.directions = Directions::iid, .seed = 1}));
  const Matrix<double> q = some<double>(1, 4, 1), k = some<double>(1, 4, 2);
  const double cosine = q.row(0).dot(k.row(0)) / (q.norm() * k.norm());
  const double a = std::acos(cosine);
  const double expected =
      q.norm() * k.norm() * (std::sin(a) + (std::numbers::pi - a) * cosine) / (2 * std::numbers::pi);
  const double estimate =
      map.query_features(q).row(0).dot(map.key_features(k).row(0)) / static_cast<double>(m);
  // Each term has second moment at most 3/2 |q|^2 |k|^2, E[relu(z)^4] being 3/2.
  CHECK(std::abs(estimate - expected) < 4 * std::sqrt(1.5 / static_cast<double>(m)) * q.norm() * k.norm());
}

TEST_CASE("a function of your own is a map: positive by its logarithm, or of either sign", "[feature_maps]") {
  const double power = 1.5;
  const Matrix<double> x = some<double>(6, 4, 1, 2), q = some<double>(5, 4, 2, 2), v = some<double>(6, 3, 3);
  const auto cosh_power =
      log_elementwise_features<double>(4, [power](double y) { return power * std::log(std::cosh(y)); });
  CHECK(distance(cosh_power.key_features(x), x.array().cosh().pow(power)) < 1e-14 * 40);

  const auto cube = signed_elementwise_features<double>(4, [](double y) { return y * y * y; });
  const Matrix<double> cubes = x.array().cube(), query_cubes = q.array().cube();
  CHECK(distance(cube.key_features(x), cubes) < 1e-14);
  const Matrix<double> similarity = query_cubes * cubes.transpose();
  Matrix<double> out(5, 3);
  const AttentionStatus status = attention(cube, q, x, v, out);
  const Vector<double> normaliser = similarity.rowwise().sum();
  CHECK(status.nonpositive_rows == (normaliser.array() <= 0).count());
  CHECK(distance(out, normaliser.cwiseInverse().asDiagonal() * (similarity * v)) < 1e-12);
}

TEMPLATE_TEST_CASE("a query without features attends to nothing, and a key without does not exist",
                   "[feature_maps]", float, double) {
  using S = TestType;
  Matrix<S> q(3, 2), k(3, 2), v(3, 2);
  q << 1, 2, -1, -2, 0, 0;
  k << -1, -1, 3, 1, 0, 0;
  v << 10, 11, 12, 13, 14, 15;
  for (const Causality causality : {Causality::none, Causality::causal}) {
    CAPTURE(causality);
    const AttentionOptions options{.causality = causality};
    const auto check = [&](const AnyLogMap<S>& map) {
      Matrix<S> out(3, 2);
      CHECK(attention(map, q, k, v, out, options).ok());
      CHECK(out.bottomRows(2).isZero(0));
      if (causality == Causality::none) CHECK((out.row(0) - v.row(1)).cwiseAbs().maxCoeff() < S(1e-5));
      if (causality == Causality::causal) CHECK(out.row(0).isZero(0));  // sees but key 0
    };
    check(relu_features<S>(2));
    check(squared_relu_features<S>(2));
  }
  const auto signed_relu = signed_elementwise_features<S>(2, [](S x) { return x > 0 ? x : S(0); });
  Matrix<S> out(3, 2);
  CHECK(attention(signed_relu, q, k, v, out).ok());
  CHECK(out.bottomRows(2).isZero(0));
  CHECK((out.row(0) - v.row(1)).cwiseAbs().maxCoeff() < S(1e-5));
}

TEMPLATE_TEST_CASE("coordinates of 1e4 and of the root of the largest number are no harder than 1",
                   "[feature_maps]", float, double) {
  using S = TestType;
  const Matrix<S> q = some<S>(6, 4, 1), k = some<S>(6, 4, 2), v = some<S>(6, 3, 3);
  for (const double size : {1e4, static_cast<double>(std::sqrt(std::numeric_limits<S>::max())) / 8}) {
    const S s = static_cast<S>(size);
    CAPTURE(size);
    // Homogeneous functions attend as they do at size 1.
    const auto check_same = [&](const AnyLogMap<S>& map) {
      for (const Causality causality : {Causality::none, Causality::causal}) {
        const AttentionOptions options{.causality = causality};
        CHECK(distance(attention(map, s * q, s * k, v, options).template cast<double>(),
                       attention(map, q, k, v, options).template cast<double>()) <
              400 * std::numeric_limits<S>::epsilon());
      }
    };
    check_same(relu_features<S>(some<S>(32, 4, 4)));
    check_same(squared_relu_features<S>(some<S>(32, 4, 4)));
    check_same(DpfpFeatures<S>(4, 7));
    const auto check_finite = [&](const AnyLogMap<S>& map) {
      CHECK(attention(map, s * q, s * k, v).allFinite());
    };
    check_finite(softplus_features<S>(4));
    check_finite(sigmoid_features<S>(4));
    check_finite(HedgehogFeatures<S>(4));
    check_finite(HedgehogFeatures<S>(4, HedgehogNormalisation::softmax));
  }
}

TEST_CASE("DPFP-nu is r times r rolled by 1 ... nu", "[feature_maps]") {
  for (const Index d : {1, 2, 5}) {
    for (Index nu = 1; nu < 2 * d; ++nu) {
      CAPTURE(d, nu);
      const DpfpFeatures<double> map(d, nu);
      REQUIRE(map.feature_dimension() == 2 * d * nu);
      const Matrix<double> x = some<double>(3, d, 1);
      const Matrix<double> phi = map.query_features(x);
      for (Index t = 0; t < 3; ++t) {
        const auto r = [&](Index i) { return std::max(0.0, i < d ? x(t, i) : -x(t, i - d)); };
        for (Index j = 1; j <= nu; ++j) {
          for (Index i = 0; i < 2 * d; ++i) {
            CHECK(phi(t, (j - 1) * 2 * d + i) == Approx(r(i) * r((i - j + 2 * d) % (2 * d))).epsilon(1e-14));
          }
        }
      }
    }
  }
  // No pair of signs in common.
  Matrix<double> q(1, 2), k(1, 2);
  q << 1, -1;
  k << 1, 2;
  CHECK(attention(DpfpFeatures<double>(2, 3), q, k, Matrix<double>::Ones(1, 1)).isZero(0));
  CHECK_THROWS_AS(DpfpFeatures<float>(0, 1), std::invalid_argument);
  CHECK_THROWS_AS(DpfpFeatures<float>(3, 0), std::invalid_argument);
  CHECK_THROWS_WITH(DpfpFeatures<float>(3, 6), ContainsSubstring("nu") && ContainsSubstring("6"));
}

TEST_CASE("Hedgehog features are exp(W x + b) and exp(-W x - b)", "[feature_maps]") {
  const Matrix<double> w = some<double>(7, 5, 1), x = some<double>(4, 5, 2), k = some<double>(6, 5, 3);
  const RowVector<double> b = some<double>(1, 7, 3);
  const Matrix<double> y = (x * w.transpose()).rowwise() + b;
  Matrix<double> expected(4, 14);
  expected << y.array().exp(), (-y).array().exp();
  CHECK(distance(HedgehogFeatures<double>({w, b}).query_features(x), expected) < 1e-13);

  // Without training: sum_i 2 cosh(q_i + k_i).
  const HedgehogFeatures<double> untrained(5);
  const Matrix<double> product = untrained.query_features(x) * untrained.key_features(k).transpose();
  CHECK(product(1, 2) == Approx(2 * (x.row(1) + k.row(2)).array().cosh().sum()));

  const HedgehogFeatures<double> normalised({w, b}, HedgehogNormalisation::softmax);
  const Matrix<double> phi = normalised.query_features(x);
  CHECK(distance(phi.leftCols(7).rowwise().sum(), Matrix<double>::Ones(4, 1)) < 1e-14);
  CHECK(distance(phi.rightCols(7).rowwise().sum(), Matrix<double>::Ones(4, 1)) < 1e-14);
  CHECK(phi(2, 3) / phi(2, 4) == Approx(expected(2, 3) / expected(2, 4)));
}
