// Tensor powers against the polynomials they stand for, and the formulas for their dimension.
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

struct Family {
  TensorPower power;
  Index least_degree;

  PolynomialKernel<double> kernel(Index n) const {
    return power == TensorPower::taylor ? PolynomialKernel<double>::taylor(n)
                                        : PolynomialKernel<double>::exponential_limit(n);
  }
  /// sum_m w_m x^m / m!, term by term
  double polynomial(Index n, double x) const {
    double sum = 0, term = 1;
    for (Index m = 0; m <= n; ++m) {
      sum += term;
      const double weight =
          power == TensorPower::taylor ? 1 : static_cast<double>(n - m) / static_cast<double>(n);
      term *= weight * x / static_cast<double>(m + 1);
    }
    return sum;
  }
};
constexpr Family kFamilies[] = {{TensorPower::taylor, 0}, {TensorPower::exponential_limit, 1}};
constexpr TensorLayout kLayouts[] = {TensorLayout::symmetric, TensorLayout::full};
constexpr Index kDimensions[] = {1, 2, 3, 5, 8};
constexpr Index kMaxDegree = 6;

Matrix<double> tokens(Index n, Index d, double seed, double norm) {
  Matrix<double> x = Matrix<double>::NullaryExpr(
      n, d, [=](Index i, Index j) { return std::sin(seed + 2.3 * static_cast<double>(i * d + j)); });
  x.rowwise().normalize();
  return norm * x;
}

double binomial(Index n, Index k) {
  double value = 1;
  for (Index i = 1; i <= k; ++i) value *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return std::round(value);
}

template <class Call>
void for_each_map(const Call& call) {
  for (const Family& family : kFamilies) {
    for (const TensorLayout layout : kLayouts) {
      for (const Index d : kDimensions) {
        for (Index n = family.least_degree; n <= kMaxDegree; ++n) {
          CAPTURE(static_cast<int>(family.power), static_cast<int>(layout), d, n);
          call(family, TensorPowerFeatures<double>(family.power, d, n, layout));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("features multiply to the polynomial, to 1e-12 of its absolute terms", "[tensor_power]") {
  for_each_map([](const Family& family, const TensorPowerFeatures<double>& map) {
    const Index n = map.degree();
    for (const double norm : {0.3, 1.0, 4.0}) {
      const Matrix<double> q = tokens(3, map.dimension(), 1, norm),
                           k = tokens(4, map.dimension(), 2, 1.1 * norm);
      const Matrix<double> product = map.query_features(q) * map.key_features(k).transpose();
      Matrix<double> tile(q.rows(), k.rows());
      Vector<double> log_scale(q.rows());
      family.kernel(n).similarity(q, k, tile, log_scale);
      for (Index i = 0; i < q.rows(); ++i) {
        for (Index j = 0; j < k.rows(); ++j) {
          const double x = q.row(i).dot(k.row(j));
          const double terms = family.polynomial(n, q.row(i).cwiseAbs().dot(k.row(j).cwiseAbs()));
          REQUIRE(std::abs(product(i, j) - family.polynomial(n, x)) <= 1e-12 * terms);
          REQUIRE(std::abs(tile(i, j) * std::exp(log_scale(i)) - family.polynomial(n, x)) <= 1e-12 * terms);
        }
      }
    }
  });
}

TEST_CASE("the number of features is that of the monomials or of the tensor entries", "[tensor_power]") {
  for_each_map([](const Family& family, const TensorPowerFeatures<double>& map) {
    const Index d = map.dimension(), n = map.degree();
    const auto m = static_cast<double>(map.feature_dimension());
    double geometric = 0;
    for (Index degree = 0; degree <= n; ++degree) geometric += std::pow(d, degree);
    const TensorPowerFeatures<double> symmetric(family.power, d, n),
        full(family.power, d, n, TensorLayout::full);
    CHECK(static_cast<double>(symmetric.feature_dimension()) == binomial(d + n, n));
    const bool taylor = family.power == TensorPower::taylor;
    CHECK(static_cast<double>(full.feature_dimension()) == (taylor ? geometric : std::pow(d + 1, n)));
    CHECK((m == binomial(d + n, n) || m == static_cast<double>(full.feature_dimension())));
  });
  CHECK(TaylorFeatures<float>(64, 2).feature_dimension() == 2145);
  CHECK(TaylorFeatures<float>(64, 3).feature_dimension() == 47905);
}

TEST_CASE("the full Taylor layout is 1, x, x (x) x / sqrt(2!), ...", "[tensor_power]") {
  const Matrix<double> x = tokens(1, 3, 1, 2);
  const Matrix<double> phi = TaylorFeatures<double>(3, 2, TensorLayout::full).query_features(x);
  CHECK(phi(0) == Approx(1));
  for (Index i = 0; i < 3; ++i) {
    CHECK(phi(1 + i) == Approx(x(i)));
    for (Index j = 0; j < 3; ++j) CHECK(phi(4 + 3 * i + j) == Approx(x(i) * x(j) / std::sqrt(2.0)));
  }
}

TEMPLATE_TEST_CASE("features of large and of no norm are finite, with their size in the log-scale",
                   "[tensor_power]", float, double) {
  for (const Family& family : kFamilies) {
    for (const TensorLayout layout : kLayouts) {
      const TensorPowerFeatures<TestType> map(family.power, 3, kMaxDegree, layout);
      Matrix<TestType> x(3, 3);
      // |x|^2 is representable, |x|^6 is not.
      const TestType huge = std::sqrt(std::numeric_limits<TestType>::max()) / 4;
      x << huge, -huge, huge / 3, 0, 0, 0, 1e-20F, 0, -1e-20F;
      Matrix<TestType> features(3, map.feature_dimension());
      Vector<TestType> log_scale(3);
      map.features(Side::keys, x, 0, {features, log_scale});
      CHECK(features.allFinite());
      CHECK(log_scale.allFinite());
      CHECK(features.cwiseAbs().maxCoeff() <= 1);
      // Beside |x|^n the lower powers vanish: what is left is w_n / n!, which is 1/n! or 1/n^n.
      const double highest = family.power == TensorPower::taylor ? 1 / std::tgamma(kMaxDegree + 1)
                                                                 : std::pow(kMaxDegree, -kMaxDegree);
      CHECK(features.row(0).squaredNorm() == Approx(highest));
      CHECK(log_scale(0) == Approx(kMaxDegree * std::log(x.row(0).norm())));
      // At 0 all that is left is the constant.
      CHECK(features.row(1).norm() == 1);
      CHECK(features(1, 0) == 1);
    }
  }
}

TEST_CASE("(1 + x/n)^n tends to exp(x) as x^2/(2n), and the Taylor polynomial much faster",
          "[tensor_power]") {
  const auto value = [](const PolynomialKernel<double>& kernel, double x) {
    Matrix<double> tile(1, 1);
    Vector<double> log_scale(1);
    kernel.similarity(Matrix<double>::Constant(1, 1, x), Matrix<double>::Ones(1, 1), tile, log_scale);
    return tile(0, 0) * std::exp(log_scale(0));
  };
  for (const double x : {-2.0, -0.5, 0.7, 3.0}) {
    for (const Index n : {64, 1024}) {
      // log(1 + y) = y - y^2/2 + y^3/3 - ...: the relative error is x^2/(2n) up to the next term, |x|^3/(3 n^2), and
      // the square of itself.
      const double error = 1 - value(PolynomialKernel<double>::exponential_limit(n), x) / std::exp(x);
      const double first = x * x / (2 * static_cast<double>(n));
      CHECK(std::abs(error - first) <= std::pow(std::abs(x), 3) / std::pow(n, 2) + first * first);
    }
    CHECK(value(PolynomialKernel<double>::taylor(30), x) == Approx(std::exp(x)).epsilon(1e-12));
  }
}
