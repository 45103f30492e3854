// Kernels of distances and angles, and of a user's own function: what they are to softmax attention and to each other.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/kernels/pairwise.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/eigen_solver.hpp"

using namespace phiattn;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class S>
Matrix<S> some(Index rows, Index cols, double seed, double size = 1) {
  return Matrix<S>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return static_cast<S>(size * std::sin(seed + 2.3 * static_cast<double>(i * cols + j)));
  });
}

/// sim(x_i, y_j)
template <Kernel K>
Matrix<double> similarities(const K& kernel, const Matrix<double>& x, const Matrix<double>& y) {
  Matrix<double> tile(x.rows(), y.rows());
  if constexpr (LogKernel<K>) {
    kernel.similarity(x, y, tile);
    return tile.array().exp();
  } else {
    Vector<double> log_scale(x.rows());
    kernel.similarity(x, y, tile, log_scale);
    return log_scale.array().exp().matrix().asDiagonal() * tile;
  }
}

double distance(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

}  // namespace

TEST_CASE("Gaussian attention is softmax attention with a bias of -|k|^2 / (2 sigma^2) on the keys",
          "[kernels]") {
  const Matrix<double> q = some<double>(9, 5, 1, 2), k = some<double>(13, 5, 2, 2),
                       v = some<double>(13, 3, 3);
  for (const double sigma : {0.5, 1.0, 3.0}) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      CAPTURE(sigma, causality);
      const AttentionOptions options{.causality = causality, .chunk = 4};
      const auto biased_softmax = log_kernel<double>([sigma](const auto& a, const auto& b) {
        return (a.dot(b) - b.squaredNorm() / 2) / (sigma * sigma);
      });
      CHECK(distance(attention(GaussianKernel<double>(sigma), q, k, v, options),
                     attention(biased_softmax, q, k, v, options)) < 1e-13);
    }
  }
}

TEST_CASE("with keys of one length Gaussian attention is softmax attention of scale 1 / sigma^2",
          "[kernels]") {
  const double sigma = 1.3;
  const Matrix<double> q = some<double>(9, 5, 1, 2), v = some<double>(13, 3, 3);
  Matrix<double> k = some<double>(13, 5, 2);
  k.rowwise().normalize();
  k *= 2.5;
  const Matrix<double> gaussian = attention(GaussianKernel<double>(sigma), q, k, v);
  CHECK(distance(gaussian, attention(ExponentialKernel<double>(), q, k, v, {.scale = 1 / (sigma * sigma)})) <
        1e-13);
  k.row(0) *= 2;  // and only then
  CHECK(distance(attention(GaussianKernel<double>(sigma), q, k, v),
                 attention(ExponentialKernel<double>(), q, k, v, {.scale = 1 / (sigma * sigma)})) > 0.01);
}

TEST_CASE("cosine attention is softmax attention of unit vectors times tau", "[kernels]") {
  const Matrix<double> q = some<double>(9, 5, 1, 3), k = some<double>(13, 5, 2, 0.2),
                       v = some<double>(13, 3, 3);
  const Matrix<double> expected = attention(ExponentialKernel<double>(), q.rowwise().normalized(),
                                            k.rowwise().normalized(), v, {.scale = 5});
  CHECK(distance(attention(CosineKernel<double>(5), q, k, v), expected) < 1e-14);
  CHECK(distance(attention(CosineKernel<double>(5), 1e100 * q, 1e-100 * k, v), expected) < 1e-14);
}

TEST_CASE("no weight of cosine attention among n keys exceeds 1 / (1 + (n - 1) e^{-2 tau}), which is reached",
          "[kernels]") {
  for (const double tau : {0.5, 2.0, 10.0}) {
    for (const Index n : {1, 2, 17}) {
      CAPTURE(tau, n);
      const double bound = 1 / (1 + static_cast<double>(n - 1) * std::exp(-2 * tau));
      const CosineKernel<double> cosine(tau);
      CHECK(attention_weights(cosine, some<double>(40, 3, 1, 100), some<double>(n, 3, 2, 100)).maxCoeff() <=
            bound * (1 + 1e-14));
      Matrix<double> k = Matrix<double>::Constant(n, 3, -1);
      k.row(0) *= -1;
      CHECK(attention_weights(cosine, Matrix<double>::Ones(1, 3), k)(0) == Approx(bound).epsilon(1e-14));
    }
  }
}

TEMPLATE_TEST_CASE("the cosine with a vector 0 is 0, and that with a tiny one is still a cosine", "[kernels]",
                   float, double) {
  const CosineKernel<TestType> cosine(3);
  const TestType tiny = std::numeric_limits<TestType>::min();
  Matrix<TestType> q(3, 2), k(4, 2);
  q << 0, 0, 3, 0, 0, 5 * tiny;
  k << 0, 0, -2, 0, 1, 1, 2 * tiny, 2 * tiny;
  Matrix<TestType> tile(3, 4);
  cosine.similarity(q, k, tile);
  Matrix<double> expected(3, 4);
  expected << 0, 0, 0, 0, 0, -3, 3 / std::sqrt(2.0), 3 / std::sqrt(2.0), 0, 0, 3 / std::sqrt(2.0),
      3 / std::sqrt(2.0);
  CHECK(distance(tile.template cast<double>(), expected) < 8 * std::numeric_limits<TestType>::epsilon());
}

TEST_CASE("Gram matrices of Gaussian, exponential, cosine and Taylor kernels are positive semidefinite",
          "[kernels]") {
  const auto least_eigenvalue = [](const Matrix<double>& gram) {
    const SymmetricSolver eigen(gram, Eigen::EigenvaluesOnly);
    return eigen.eigenvalues().minCoeff() / eigen.eigenvalues().maxCoeff();
  };
  const Matrix<double> x = some<double>(40, 3, 1, 1.5);
  const double rounding = 40 * std::numeric_limits<double>::epsilon();
  CHECK(least_eigenvalue(similarities(GaussianKernel<double>(0.8), x, x)) > -rounding);
  CHECK(least_eigenvalue(similarities(ExponentialKernel<double>(), x, x)) > -rounding);
  CHECK(least_eigenvalue(similarities(CosineKernel<double>(4), x, x)) > -rounding);
  for (const Index n : {1, 2, 3, 4}) {
    CAPTURE(n);
    CHECK(least_eigenvalue(similarities(PolynomialKernel<double>::taylor(n), x, x)) > -rounding);
  }
}

TEST_CASE("exp(q . k) prefers a longer key to the query itself and the Gaussian does not", "[kernels]") {
  const Matrix<double> x0 = some<double>(1, 4, 1);
  Matrix<double> k(6, 4);
  k << x0, 1.1 * x0, 0.9 * x0, -x0, x0 + 0.1 * some<double>(1, 4, 2), Matrix<double>::Zero(1, 4);
  const Matrix<double> exponential = similarities(ExponentialKernel<double>(), x0, k);
  CHECK(exponential(0) < exponential(1));
  const Matrix<double> gaussian = similarities(GaussianKernel<double>(1), x0, k);
  CHECK(gaussian(0) == Approx(1).epsilon(1e-15));
  CHECK(gaussian.rightCols(5).maxCoeff() < gaussian(0));
}

TEMPLATE_TEST_CASE("any function of a pair is a kernel: the built-in ones, one pair at a time", "[kernels]",
                   float, double) {
  using S = TestType;
  const Matrix<S> q = some<S>(9, 5, 1), k = some<S>(13, 5, 2), v = some<S>(13, 3, 3);
  const double rounding = 100 * static_cast<double>(std::numeric_limits<S>::epsilon());
  const double sigma = 1.3;
  const RowVector<S> shift = some<S>(1, 5, 4);
  for (const Causality causality : {Causality::none, Causality::causal}) {
    CAPTURE(causality);
    const AttentionOptions options{.causality = causality, .scale = 0.7, .chunk = 4};
    const auto same = [&](const auto& a, const auto& b) {
      return distance(attention(a, q, k, v, options).template cast<double>(),
                      attention(b, q, k, v, options).template cast<double>());
    };
    const auto exponential = log_kernel<S>([](const auto& a, const auto& b) { return a.dot(b); });
    const auto gaussian = log_kernel<S>([sigma](const auto& a, const auto& b) {
      return static_cast<double>((a - b).squaredNorm()) / (-2 * sigma * sigma);
    });
    const auto moved = log_kernel<S>([shift](const auto& a, const auto& b) {
      return a.dot(b + shift);
    });  // what is added to all keys cancels
    const auto cubic = signed_kernel<S>([](const auto& a, const auto& b) {
      const S x = a.dot(b);
      return 1 + x + x * x / 2 + x * x * x / 6;
    });
    CHECK(same(exponential, ExponentialKernel<S>()) < rounding);
    CHECK(same(moved, ExponentialKernel<S>()) < rounding);
    CHECK(same(gaussian, GaussianKernel<S>(sigma)) < rounding);
    CHECK(same(cubic, PolynomialKernel<S>::taylor(3)) < rounding);
  }
}

TEST_CASE("a pair of log-similarity -inf does not attend", "[kernels]") {
  const auto positive_only =
      log_kernel<double>([](const auto& a, const auto& b) { return b(0) > 0 ? a.dot(b) : -kInfinity; });
  const Matrix<double> q = some<double>(4, 3, 1), v = some<double>(6, 2, 3);
  Matrix<double> k = some<double>(6, 3, 2);
  k.col(0) << -1, 1, -2, 2, -3, -4;
  const Matrix<double> weights = attention_weights(positive_only, q, k);
  for (const Index hidden : {0, 2, 4, 5}) CHECK(weights.col(hidden).isZero(0));
  CHECK(distance(weights.rowwise().sum(), Matrix<double>::Ones(4, 1)) < 1e-15);
  k.col(0).setConstant(-1);
  CHECK(attention(positive_only, q, k, v).isZero(0));
}

TEST_CASE("the status of a signed pairwise kernel counts its negative normalisers", "[kernels]") {
  const auto sign = signed_kernel<double>([](const auto& a, const auto& b) { return a(0) * b(0); });
  Matrix<double> q(3, 1), out(3, 1);
  q << 1, -1, -2;
  const Matrix<double> k = Matrix<double>::Ones(2, 1), v = Matrix<double>::Ones(2, 1);
  const AttentionStatus status = attention(sign, q, k, v, out);
  CHECK(status.nonpositive_rows == 2);
  CHECK(status.first_nonpositive_row == 1);
}

TEST_CASE("kernels refuse a sigma that is not positive and a temperature that is not finite", "[kernels]") {
  for (const double sigma : {0.0, -1.0, 1e-300, 1e300, kInfinity, std::nan("")}) {
    CAPTURE(sigma);
    CHECK_THROWS_AS(GaussianKernel<double>(sigma), std::invalid_argument);
    CHECK_THROWS_WITH(GaussianKernel<float>(sigma),
                      ContainsSubstring("sigma") && ContainsSubstring("positive"));
  }
  CHECK_THROWS_AS(GaussianKernel<float>(1e-20), std::invalid_argument);
  for (const double temperature : {kInfinity, -kInfinity, std::nan("")}) {
    CAPTURE(temperature);
    CHECK_THROWS_WITH(CosineKernel<double>(temperature),
                      ContainsSubstring("temperature") && ContainsSubstring("finite"));
  }
  CHECK_THROWS_AS(CosineKernel<float>(1e300), std::invalid_argument);
}
