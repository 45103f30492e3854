// Similarities beyond the range of the compute type: never the result of no keys, and never silent.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/dijiang.hpp>
#include <phiattn/feature_maps/elementwise.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/hedgehog.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/reparametrised.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>
#include <phiattn/projection/projection.hpp>

#include <limits>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace phiattn;
using laws::gaussian;
using laws::kSeed;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class F>
void check_nan(const F& similarity, const Matrix<float>& q, const Matrix<float>& k) {
  const Matrix<float> v = Matrix<float>::Constant(k.rows(), 2, 7);
  for (const Causality causality : {Causality::none, Causality::causal}) {
    Matrix<float> out(q.rows(), 2);
    const AttentionStatus status = attention(similarity, q, k, v, out, {.causality = causality});
    CHECK(out.array().isNaN().all());
    CHECK(status.nonpositive_rows == q.rows());
    CHECK_FALSE(status.ok());
  }
}

}  // namespace

TEST_CASE("where all similarities vanish by overflow the row is NaN, and the status says so") {
  Matrix<float> q(1, 2), k(1, 2);
  q << 1e30F, 0;
  k << -1e30F, 0;
  check_nan(ExponentialKernel<float>(), q, k);
  check_nan(GaussianKernel<float>(1), q, k);
  q << kInfinity, 1;
  k << -1, 0;
  check_nan(ExponentialKernel<float>(), q, k);
  q << 0, 0;
  k << 1e30F, 1e30F;
  check_nan(PositiveRandomFeatures<float>(sample_projection<float>(16, 2)), q, k);
  q.setConstant(-3e38F);
  k.setConstant(-3e38F);
  check_nan(EluFeatures<float>(2), q, k);
  // One that does not vanish takes all.
  Matrix<float> keys(2, 2);
  keys << -1e30F, 0, 0, 1;
  q << 1e30F, 0;
  CHECK(attention(ExponentialKernel<float>(), q, keys, keys) == keys.row(1));
}

TEST_CASE("a wrapped map is as positive as the map itself") {
  const Matrix<float> zero = Matrix<float>::Zero(1, 2), far_away = Matrix<float>::Constant(1, 2, 1e30F);
  const PositiveRandomFeatures<float> map(sample_projection<float>(16, 2));
  const auto moved = Reparametrisation::shift(Vector<double>::Ones(2), Vector<double>::Ones(2));
  check_nan(any_feature_map(map), zero, far_away);
  check_nan(Reparametrised(map, moved), zero, far_away);
  check_nan(Reparametrised(any_feature_map(map), moved), zero, far_away);
  check_nan(any_feature_map(Reparametrised(map, moved)), zero, far_away);

  // Of a map that may be 0, a row of no similarities is one of no keys.
  const auto nowhere = log_elementwise_features<float>(2, [](float) { return -kInfinity; });
  const auto check_zero = [&](const auto& similarity) {
    Matrix<float> out(1, 2);
    CHECK(attention(similarity, zero, zero, far_away, out).ok());
    CHECK(out.isZero(0));
  };
  check_zero(nowhere);
  check_zero(any_feature_map(nowhere));
  check_zero(Reparametrised(any_feature_map(nowhere), moved));
}

TEST_CASE("exponential features that vanish by overflow are none of no keys") {
  const Matrix<float> x = Matrix<float>::Constant(1, 1, -3e38F);
  check_nan(DiJiangFeatures<float>(Projection<float>(Matrix<float>{{2}, {3}})), x, x);
  check_nan(softplus_features<float>(1), x, x);
  check_nan(sigmoid_features<float>(1), x, x);
  // Either half of the features, of q where k has none.
  const Matrix<float> q{{3e38F, -3e38F}};
  check_nan(HedgehogFeatures<float>(2, HedgehogNormalisation::softmax), q, -q);
}

TEST_CASE("a cosine that rounds to more than 1 is no key less at the largest temperature") {
  const CosineKernel<float> kernel(std::numeric_limits<float>::lowest());
  const Matrix<float> x = gaussian<float>(100, 5, kSeed), v = Matrix<float>::Ones(1, 1);
  Index out_of_range = 0;
  for (Index i = 0; i < x.rows(); ++i) {
    Matrix<float> out(1, 1);
    const bool ok = attention(kernel, x.row(i), x.row(i), v, out).ok();
    CAPTURE(kSeed, i);
    CHECK((ok ? out(0, 0) == 1 : std::isnan(out(0, 0))));
    out_of_range += !ok;
  }
  CHECK(out_of_range > 0);
  CHECK(out_of_range < x.rows());
}

TEST_CASE("keys whose squares leave the range leave no wrong weights behind in a closure") {
  Matrix<float> k(3, 2), v(3, 1), q(1, 2);
  k << 1e20F, 1e20F, -1e20F, 5e19F, 3e19F, 1e20F;
  v << 1, 2, 3;
  q << 1, 1;
  GaussianClosure<float> closure(2, 1);
  closure.append(k, v);
  Matrix<float> out(1, 1);
  CHECK_FALSE(closure.read(q, out).ok());
  CHECK(std::isnan(out(0, 0)));
}

TEST_CASE("a cluster whose estimate leaves the range is read exactly") {
  // Of the second cluster the variance is infinite where queries are 0.
  const Matrix<double> centres{{1000, 0}, {0, 0}};
  const Matrix<float> q{{0.003F, 0}, {-0.003F, 0}}, k{{1000, 0}, {1, 3e19F}, {2, -3e19F}}, v{{1}, {2}, {3}};
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(2), Vector<double>::Zero(2));
  const AttentionOptions options{.scale = 1};
  ClusterMemory<float> clusters(centres, plain, 1, {.top = 1}, options);
  clusters.append(k, v);
  const Matrix<float> out = clusters.read(q), due = attention(ExponentialKernel<float>(), q, k, v, options);
  CHECK((out - due).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() < 1e-6F);
}

TEST_CASE("the smallest of all log-weights is one: all keys alike, the mean of the values") {
  using S = double;
  const Index n = 40, d = 4;
  const Matrix<S> q = gaussian<S>(n, d, kSeed).cwiseAbs(), v = gaussian<S>(n, 3, kSeed + 2);
  const Matrix<S> k = gaussian<S>(n, d, kSeed + 1).cwiseAbs();
  const Vector<S> least = Vector<S>::Constant(n, std::numeric_limits<S>::lowest());
  const auto check = [&](auto memory) {
    memory.append(k, v, least);
    const Matrix<S> out = memory.read(q);
    CHECK((out.rowwise() - v.colwise().mean()).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() < 1e-12);
  };
  check(KeyValueCache(ExponentialKernel<S>(), 3));
  check(LinearState(EluFeatures<S>(d), 3));
  check(LinearState(PositiveRandomFeatures<S>(sample_projection<S>(16, d)), 3));
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(d), Vector<double>::Zero(d));
  // Four centres on four keys far apart: each cluster of weight 1/n.
  check(ClusterMemory<S>(k.topRows(4), plain, 3, {.top = 4}));
  check(Windowed(7, ClusterMemory<S>(k.topRows(4), plain, 3, {.top = 4})));
}
