// Windows before any memory, codebooks, and the choice of a memory. What they compute: laws/far_memory_test.

#include <phiattn/analysis/cheapest_memory.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/fitting/k_means.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>
#include <phiattn/projection/projection.hpp>

#include <set>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace phiattn;
using laws::gaussian;
using laws::kSeed;

namespace {

constexpr Index kN = 80;
constexpr Index kD = 4;
constexpr Index kDv = 3;

struct Sample {
  Matrix<double> q = gaussian<double>(kN, kD, kSeed, 2);
  Matrix<double> k = gaussian<double>(kN, kD, kSeed + 1, 2);
  Matrix<double> v = gaussian<double>(kN, kDv, kSeed + 2);
};

constexpr AttentionOptions kCausal{.causality = Causality::causal};

template <class Far>
void check_far(const Far& far, double largest_error) {
  const auto [q, k, v] = Sample();
  const Matrix<double> all = attention(Windowed(kN, far), q, k, v, kCausal);
  CHECK(maximal_error(all, attention(ExponentialKernel<double>(), q, k, v, kCausal)) < 1e-13);

  // Behind a window, token by token and at once, from either side.
  const Windowed window(8, far);
  const Matrix<double> out = attention(window, q, k, v, kCausal);
  auto streamed = window;
  for (Index t = 0; t < kN; ++t) {
    const Matrix<double> row = streamed.advance(q.row(t), k.row(t), v.row(t));
    CHECK(maximal_error(row, out.row(t)) < largest_error);
  }
  // By hand: combine() of the window and of what is before it.
  for (const Index t : {0, 7, 8, 50, 79}) {
    const Index begin = std::max<Index>(0, t - 7);
    auto rest = far;
    rest.append(k.topRows(begin), v.topRows(begin));
    KeyValueCache<ExponentialKernel<double>> near({}, kDv);
    near.append(k.middleRows(begin, t + 1 - begin), v.middleRows(begin, t + 1 - begin));
    const auto both = combine(near.read_partial(q.row(t)), rest.read_partial(q.row(t), t));
    CHECK(maximal_error(both.out, out.row(t)) < largest_error);
  }
  const Matrix<double> around = attention(window, q, k, v);
  for (const Index t : {0, 3, 40, 79}) {
    const Index begin = std::max<Index>(0, t - 4);
    const Index end = std::min(kN, t + 5);
    auto before = far;
    before.append(k.topRows(begin), v.topRows(begin));
    auto behind = far;
    behind.append(k.bottomRows(kN - end).colwise().reverse(), v.bottomRows(kN - end).colwise().reverse());
    KeyValueCache<ExponentialKernel<double>> near({}, kDv);
    near.append(k.middleRows(begin, end - begin), v.middleRows(begin, end - begin));
    const auto rest = combine(before.read_partial(q.row(t)), behind.read_partial(q.row(t)));
    CHECK(maximal_error(combine(near.read_partial(q.row(t)), rest).out, around.row(t)) < largest_error);
  }
}

}  // namespace

TEST_CASE("any memory can be the far field of a window") {
  SECTION("closure") { check_far(GaussianClosure<double>(kD, kDv), 1e-12); }
  SECTION("cache") { check_far(KeyValueCache<ExponentialKernel<double>>({}, kDv), 1e-12); }
  SECTION("random features") {
    const auto omega = sample_projection<double>(32, kD);
    check_far(LinearState(PositiveRandomFeatures<double>(omega), kDv), 1e-11);
  }
  SECTION("elu + 1, at the window's scale") {
    // A map with a scale of its own would weigh near and far tokens differently.
    check_far(LinearState(EluFeatures<double>(kD), kDv, {.scale = 0.5}), 1e-11);
  }
  SECTION("nothing") { check_far(ForgetfulMemory<double>(kDv), 1e-12); }
  SECTION("another window") { check_far(Windowed(5, GaussianClosure<double>(kD, kDv)), 1e-12); }
}

TEST_CASE("a window and what is behind it have one scale, whoever was told it") {
  const auto [q, k, v] = Sample();
  const EluFeatures<double> elu(kD);
  const auto check_scale = [&, &q = q, &k = k, &v = v](const auto& window, double scale) {
    REQUIRE(window.scale() == scale);
    const Matrix<double> out = attention(window, q, k, v, kCausal);
    for (const Index t : {0, 7, 8, 79}) {
      const Index begin = std::max<Index>(0, t - 7);
      LinearState<EluFeatures<double>> rest(elu, kDv, {.scale = scale});
      rest.append(k.topRows(begin), v.topRows(begin));
      KeyValueCache<ExponentialKernel<double>> near({}, kDv, {.scale = scale});
      near.append(k.middleRows(begin, t + 1 - begin), v.middleRows(begin, t + 1 - begin));
      const auto both = combine(near.read_partial(q.row(t)), rest.read_partial(q.row(t)));
      CHECK(maximal_error(both.out, out.row(t)) < 1e-11);
    }
  };
  check_scale(Windowed(8, LinearState(elu, kDv, {.scale = 4})), 4);
  check_scale(Windowed(8, LinearState(elu, kDv, {.scale = 4}), {.scale = 4}), 4);
  check_scale(Windowed(8, LinearState(elu, kDv)), 1);  // the far memory's own default
  using Cache = KeyValueCache<ExponentialKernel<double>>;
  CHECK_THROWS_WITH(Windowed(8, LinearState(elu, kDv, {.scale = 4}), {.scale = 2}),
                    Catch::Contains("scale: got 2.0") && Catch::Contains("expected 4.0"));
  CHECK_THROWS_WITH(Windowed(8, Cache({}, kDv, {.scale = 4}), {.scale = 2}),
                    Catch::Contains("scale: got 2.0") && Catch::Contains("expected 4.0"));
  // A cache settles its scale with the first token, and the window with it.
  Windowed late(8, Cache({}, kDv), {.scale = 2});
  CHECK_THROWS_WITH(late.append(k, v), Catch::Contains("scale: got 2.0") && Catch::Contains("expected 0.5"));
  CHECK(late.size() == 0);
  Windowed settled(8, Cache({}, kDv));
  CHECK_FALSE(settled.scale());
  CHECK_FALSE(settled.dimension());
  settled.append(k, v);
  CHECK(settled.scale() == 0.5);
  CHECK(settled.dimension() == kD);
}

TEST_CASE("a window before nothing is attention to the last w tokens") {
  const auto [q, k, v] = Sample();
  const Matrix<double> out = attention(Windowed(8, ForgetfulMemory<double>(kDv)), q, k, v, kCausal);
  for (Index t = 0; t < kN; ++t) {
    const Index n = std::min<Index>(t + 1, 8);
    const Matrix<double> due = attention(ExponentialKernel<double>(), q.row(t), k.middleRows(t + 1 - n, n),
                                         v.middleRows(t + 1 - n, n));
    CHECK(maximal_error(out.row(t), due) < 1e-13);
  }
}

TEST_CASE("windows name what does not fit") {
  using Catch::Contains;
  const GaussianClosure<double> far(kD, kDv);
  CHECK_THROWS_WITH(Windowed(-1, far), Contains("window: got -1, expected at least 0"));
  CHECK_THROWS_WITH(Windowed(4, far, {.scale = 1}),
                    Contains("scale: got 1.0") && Contains("scale of the far memory"));
  CHECK_NOTHROW(Windowed(4, GaussianClosure<double>(kD, kDv, {}, {.scale = 1}), {.scale = 1}));
  CHECK_NOTHROW(Windowed(4, GaussianClosure<float>(7, kDv, {}, {.scale = 0.3}), {.scale = 0.3}));
  auto filled = far;
  filled.append(Matrix<double>::Zero(1, kD), Matrix<double>::Zero(1, kDv));
  CHECK_THROWS_WITH(Windowed(4, filled), Contains("size of the far memory: got 1"));
  Windowed window(4, far);
  CHECK_THROWS_WITH(window.merge(Windowed(5, far)), Contains("window of the other memory: got 5"));
  CHECK_THROWS_WITH(window.read(Matrix<double>::Zero(1, 5)), Contains("columns of q: got 5"));
  window.append(Matrix<double>::Zero(1, kD), Matrix<double>::Zero(1, kDv));
  CHECK_THROWS_WITH(attention(window, Matrix<double>::Zero(1, kD), Matrix<double>::Zero(1, kD),
                              Matrix<double>::Zero(1, kDv)),
                    Contains("size of the memory: got 1"));
}

TEST_CASE("k-means finds separate clusters, the same ones on every run") {
  Matrix<double> x = gaussian<double>(90, kD, kSeed, 0.1);
  for (Index j = 0; j < 90; ++j) x(j, j % 3) += 10;
  const Matrix<double> centres = k_means(x, 3);
  CHECK(centres == k_means(x, 3));
  std::set<Index> axes;
  for (Index c = 0; c < 3; ++c) {
    Index axis = 0;
    CHECK(centres.row(c).maxCoeff(&axis) == Approx(10).epsilon(0.01));
    axes.insert(axis);
  }
  CHECK(axes == std::set<Index>{0, 1, 2});
  CHECK(maximal_error(k_means(x, 1), x.colwise().mean()) < 1e-12);
  const Matrix<double> equal = Matrix<double>::Ones(5, 2);
  CHECK(k_means(equal, 3) == Matrix<double>::Ones(3, 2));
  CHECK_THROWS_WITH(k_means(x.topRows(2), 3), Catch::Contains("rows of x: got 2, expected at least 3"));
  CHECK_THROWS_WITH(k_means(x, 0), Catch::Contains("centres: got 0"));
}

TEST_CASE("more clusters read, less error, down to none") {
  const Sample tokens;
  const auto& q = tokens.q;
  const auto& k = tokens.k;
  const auto& v = tokens.v;
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  const Matrix<double> centres = k_means(k, 16);
  const Matrix<double> due = attention(ExponentialKernel<double>(), q, k, v);
  const auto error = [&](Index top) {
    return relative_frobenius_error(
        attention(ClusterMemory<double>(centres, plain, kDv, {.top = top}), q, k, v), due);
  };
  CAPTURE(kSeed, error(0), error(2), error(8), error(16));
  CHECK(error(2) < error(0) / 2);
  CHECK(error(8) < error(2) / 2);
  CHECK(error(16) < 1e-14);
  CHECK_THROWS_WITH(ClusterMemory<double>(centres, plain, kDv, {.top = -1}), Catch::Contains("top: got -1"));
}

TEST_CASE("the cheapest memory is the first within the tolerance, else the best") {
  const Sample tokens;
  const auto& q = tokens.q;
  const auto& k = tokens.k;
  const auto& v = tokens.v;
  const Windowed none(2, ForgetfulMemory<double>(kDv));
  const Windowed closure(8, GaussianClosure<double>(kD, kDv));
  const Windowed exact(kN, GaussianClosure<double>(kD, kDv));
  const auto choose = [&](double tolerance) {
    return cheapest_memory<double>(tolerance, q, k, v, kCausal, none, closure, exact);
  };
  const auto all = choose(0);
  REQUIRE(all.errors.size() == 3);
  CHECK(all.memory == 2);
  CHECK(all.errors[1] < all.errors[0]);
  CHECK(choose(all.errors[1]).memory == 1);
  CHECK(choose(all.errors[1]).errors.size() == 2);
  CHECK(choose(2).memory == 0);
  CHECK(cheapest_memory<double>(0, q, k, v, kCausal, exact, none).memory == 0);
}
