// Nystrom features against the projection that they stand for, and the choice of landmarks.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/nystrom.hpp>
#include <phiattn/fitting/landmarks.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/kernels/pairwise.hpp>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/eigen_solver.hpp"

using namespace phiattn;

namespace {

Matrix<double> some(Index rows, Index cols, double seed, double size = 1) {
  return Matrix<double>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return size * std::sin(seed + 2.3 * static_cast<double>(i * cols + j) + 0.1 * static_cast<double>(i * i));
  });
}

double distance(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

template <class Map>
Matrix<double> products(const Map& map, const Matrix<double>& q, const Matrix<double>& k) {
  return map.query_features(q) * map.key_features(k).transpose();
}

Matrix<double> exponentials(const Matrix<double>& x, const Matrix<double>& y) {
  return (x * y.transpose()).array().exp();
}

/// How far rounding in S may take phi(q) . phi(k) of the Gaussian kernel of sigma 1, for tokens of length up to `longest`.
///
/// With C the landmarks' correlations, least its smallest eigenvalue apart from those that are 0, kept the smallest that
/// is not dropped, jitter included, and |a| <= sqrt(m): similarities err by eps (1 + E), exponents being at most E, so
/// that C errs by m eps (1 + E), and a by |a| eps (1 + E). Since a is in the span of C, w = (C + jitter I)^{-1} a is at most
/// |a| / least long whatever the jitter, and errors of C and of a enter a . w by
///
///     2 m eps (1 + E) |a|^2 / least^2 + 2 eps (1 + E) |a|^2 / least
///
/// (Wedin 1973 for the first, where eigenvalues are dropped). The root is as large as kept^{-1/2}: its entries, and the
/// products by which it is made and applied, cost phi at most m^2 eps |a| kept^{-1/2}, where |phi| <= 1.
template <class S>
double rounding(const Matrix<double>& landmarks, double jitter, double longest) {
  const auto eps = static_cast<double>(std::numeric_limits<S>::epsilon());
  const auto m = static_cast<double>(landmarks.rows());
  const Matrix<double> c = Matrix<double>::NullaryExpr(
      landmarks.rows(), landmarks.rows(),
      [&](Index i, Index j) { return std::exp(-(landmarks.row(i) - landmarks.row(j)).squaredNorm() / 2); });
  const Vector<double> values = SymmetricSolver(c).eigenvalues();
  const double largest = values.maxCoeff();
  const double least = (values.array() > 1e-10).select(values, largest).minCoeff();
  const double kept = jitter > m * eps * largest ? jitter : least;
  const double exponent = std::pow(longest + landmarks.rowwise().norm().maxCoeff(), 2) / 2;
  const double first_order = 2 * eps * (1 + exponent) * m * (m / least + 1) / least;
  const double of_features = m * m * eps * std::sqrt(m / kept);
  return first_order + 2 * of_features + of_features * of_features;
}

}  // namespace

TEST_CASE("Nystrom features multiply to kappa(q, L) (kappa(L, L) + jitter diag kappa(L, L))^{-1} kappa(L, k)",
          "[nystrom]") {
  const Matrix<double> landmarks = some(6, 4, 1), q = some(5, 4, 2), k = some(7, 4, 3);
  const double jitter = 1e-2;
  Matrix<double> inverted = exponentials(landmarks, landmarks);
  inverted.diagonal() *= 1 + jitter;
  const Matrix<double> expected =
      exponentials(q, landmarks) * inverted.inverse() * exponentials(landmarks, k);
  const NystromFeatures map(ExponentialKernel<double>(), landmarks, {.jitter = jitter, .scale = 1});
  CHECK(map.dimension() == 4);
  CHECK(map.feature_dimension() == 6);
  CHECK(distance(products(map, q, k), expected) < 1e-11);
  CHECK(map.key_features(k) == map.query_features(k));
}

TEST_CASE(
    "without jitter the kernel of the landmarks is exact, and no similarity of a token with itself too large",
    "[nystrom]") {
  const Matrix<double> landmarks = some(6, 4, 1), x = some(50, 4, 2, 1.5);
  const auto check = [&](const auto& kernel) {
    const NystromFeatures map(kernel, landmarks, {.jitter = 0, .scale = 1});
    Matrix<double> log_exact(6, 6), log_self(50, 50);
    kernel.similarity(landmarks, landmarks, log_exact);
    kernel.similarity(x, x, log_self);
    CHECK(distance(products(map, landmarks, landmarks), log_exact.array().exp()) < 1e-9);
    const Matrix<double> own = map.query_features(x).rowwise().squaredNorm();
    CHECK((own.array() <= log_self.diagonal().array().exp() * (1 + 1e-9)).all());
  };
  check(ExponentialKernel<double>());
  check(GaussianKernel<double>(1.3));
}

TEST_CASE("with every key a landmark Nystrom attention is the kernel's own", "[nystrom]") {
  const Matrix<double> q = some(9, 4, 1), k = some(12, 4, 2), v = some(12, 3, 3);
  const double scale = 0.5;  // that of exp(q . k) for d = 4
  const NystromFeatures softmax(ExponentialKernel<double>(), k, {.jitter = 0});
  CHECK(softmax.default_scale(4) == scale);
  CHECK(distance(attention(softmax, q, k, v), attention(ExponentialKernel<double>(), q, k, v)) < 1e-6);
  const NystromFeatures skyformer(GaussianKernel<double>(1), k, {.jitter = 0});
  CHECK(distance(attention(skyformer, q, k, v), attention(GaussianKernel<double>(1), q, k, v)) < 1e-6);
  // Landmarks come in the units of the keys, whatever the scale.
  const NystromFeatures scaled(GaussianKernel<double>(1), k, {.jitter = 0, .scale = 2});
  CHECK(distance(attention(scaled, q, k, v), attention(GaussianKernel<double>(1), q, k, v, {.scale = 2})) <
        1e-6);
}

TEMPLATE_TEST_CASE("landmarks that come thrice are, with three times the jitter, as good as once",
                   "[nystrom]", float, double) {
  using S = TestType;
  Matrix<double> once(5, 4);  // far apart: all that is nearly singular is the repetition
  once << 2 * Matrix<double>::Identity(4, 4), Matrix<double>::Constant(1, 4, -0.8);
  Matrix<double> thrice(15, 4);
  thrice << once, once, once;
  const Matrix<S> q = some(9, 4, 2).cast<S>(), k = some(12, 4, 3).cast<S>(), v = some(12, 3, 4).cast<S>();
  for (const double jitter : {0.0, 1e-12}) {
    CAPTURE(jitter > 0);
    // Similarities, not outputs: a normaliser that nearly cancels enlarges any rounding.
    const auto similarities = [&](const Matrix<double>& landmarks, double ridge) {
      const NystromFeatures map(GaussianKernel<S>(1), landmarks, {.jitter = ridge});
      const Matrix<S> product = map.query_features(q) * map.key_features(k).transpose();
      return Matrix<double>(product.template cast<double>());
    };
    const double longest = 2;  // four coordinates of at most 1
    const double bound = rounding<S>(thrice, 3 * jitter, longest) + rounding<S>(once, jitter, longest);
    CAPTURE(bound);
    CHECK(bound < 1e-3);
    CHECK(distance(similarities(thrice, 3 * jitter), similarities(once, jitter)) < bound);
    const NystromFeatures one_point(GaussianKernel<S>(1), Matrix<double>::Ones(7, 4), {.jitter = jitter});
    CHECK(attention(one_point, q, k, v).allFinite());
  }
}

TEMPLATE_TEST_CASE("landmarks and tokens far beyond the range of exp stay finite", "[nystrom]", float,
                   double) {
  using S = TestType;
  for (const double size : {30.0, 1e4, 1e15}) {
    CAPTURE(size);
    const Matrix<double> landmarks = some(6, 4, 1, size);
    const Matrix<S> q = some(9, 4, 2, size).cast<S>();
    const auto check_finite = [&](const auto& map) {
      Matrix<S> features(9, 6);
      Vector<S> log_scale(9);
      map.features(Side::queries, q, 0, {features, log_scale});
      CHECK(features.allFinite());
      CHECK(log_scale.allFinite());
      CHECK((features.cwiseAbs().rowwise().maxCoeff().array() > 0).all());
    };
    check_finite(NystromFeatures(ExponentialKernel<S>(), landmarks));
    check_finite(NystromFeatures(GaussianKernel<S>(1.3), landmarks));

    // Landmarks that far apart know nothing of each other: each attends to itself.
    Matrix<double> axes(8, 4);
    axes << size * Matrix<double>::Identity(4, 4), -size * Matrix<double>::Identity(4, 4);
    const Matrix<S> tokens = axes.cast<S>(), v = some(8, 3, 4).cast<S>();
    const auto check_identity = [&](const auto& map) {
      CHECK((attention(map, tokens, tokens, v) - v).cwiseAbs().maxCoeff() <
            8 * std::numeric_limits<S>::epsilon());
    };
    check_identity(NystromFeatures(ExponentialKernel<S>(), axes));
    check_identity(NystromFeatures(GaussianKernel<S>(1), axes));
  }
}

TEST_CASE("Nystrom features refuse what has no root", "[nystrom]") {
  const Matrix<double> landmarks = some(3, 4, 1);
  const GaussianKernel<double> gaussian(1);
  CHECK_THROWS_WITH(NystromFeatures(gaussian, Matrix<double>(0, 4)), ContainsSubstring("landmarks"));
  CHECK_THROWS_WITH(NystromFeatures(gaussian, Matrix<double>(4, 0)), ContainsSubstring("landmarks"));
  for (const double bad : {-1e-3, std::nan(""), static_cast<double>(INFINITY)}) {
    CHECK_THROWS_WITH(NystromFeatures(gaussian, landmarks, {.jitter = bad}), ContainsSubstring("jitter"));
    CHECK_THROWS_WITH(NystromFeatures(gaussian, landmarks, {.scale = bad}), ContainsSubstring("scale"));
  }
  CHECK_THROWS_WITH(NystromFeatures(gaussian, std::nan("") * landmarks), ContainsSubstring("landmarks"));
  const auto nowhere = log_kernel<double>([](const auto&, const auto&) { return -INFINITY; });
  CHECK_THROWS_WITH(NystromFeatures(nowhere, landmarks), ContainsSubstring("landmarks"));
}

TEST_CASE("segment means are the means of consecutive rows, each row in one segment", "[nystrom]") {
  for (const Index n : {1, 7, 12}) {
    const Matrix<double> x = some(n, 3, 1);
    for (Index count = 1; count <= n; ++count) {
      CAPTURE(n, count);
      const Matrix<double> means = segment_means(x, count);
      REQUIRE(means.rows() == count);
      Index begin = 0;
      for (Index l = 0; l < count; ++l) {
        // The shorter ones come first.
        const Index length = n / count + (l >= count - n % count ? 1 : 0);
        CHECK(distance(means.row(l), x.middleRows(begin, length).colwise().mean()) < 1e-15);
        begin += length;
      }
      CHECK(begin == n);
    }
  }
  CHECK(segment_means(some(7, 3, 1).cast<float>(), 7) == some(7, 3, 1).cast<float>().cast<double>());
  CHECK_THROWS_AS(segment_means(some(7, 3, 1), 0), std::invalid_argument);
  CHECK_THROWS_WITH(segment_means(some(7, 3, 1), 8), ContainsSubstring("7") && ContainsSubstring("8"));
}

TEST_CASE("sampled rows are different rows, repeatable, and each as likely", "[nystrom]") {
  const Index n = 10, count = 4, draws = 4000;
  Matrix<double> x(n, 1);
  x.col(0).setLinSpaced(n, 0, static_cast<double>(n - 1));
  Matrix<double> times = Matrix<double>::Zero(n, count);
  for (Index seed = 0; seed < draws; ++seed) {
    const Matrix<double> sample = sampled_rows(x, count, static_cast<std::uint64_t>(seed));
    REQUIRE(std::set<double>(sample.data(), sample.data() + count).size() == static_cast<std::size_t>(count));
    for (Index l = 0; l < count; ++l) ++times(static_cast<Index>(sample(l)), l);
  }
  const double mean = static_cast<double>(draws) / static_cast<double>(n);
  CHECK((times.array() - mean).abs().maxCoeff() < 5 * std::sqrt(mean));
  CHECK(sampled_rows(x, count, 7) == sampled_rows(x, count, 7));
  CHECK(sampled_rows(x, count, 7) != sampled_rows(x, count, 8));
  Matrix<double> all = sampled_rows(x, n, 3);
  std::sort(all.data(), all.data() + n);
  CHECK(all == x);
  CHECK_THROWS_AS(sampled_rows(x, 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(sampled_rows(x, n + 1, 1), std::invalid_argument);
}
