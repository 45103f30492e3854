// The outside of memories: what is refused before anything changes, what goes on after an exception, and that any memory
// goes on where the one stood that it was made of.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/any_memory.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace phiattn;
using laws::gaussian;
using laws::kSeed;

namespace {

constexpr Index kD = 4;
constexpr Index kDv = 3;

/// cosFormer that throws when it comes to its n-th block.
class ThrowingFeatures : public SignedFeatureMapBase<ThrowingFeatures, double> {
 public:
  explicit ThrowingFeatures(int blocks) : blocks_(std::make_shared<int>(blocks)) {}
  Index dimension() const { return kD; }
  Index feature_dimension() const { return map_.feature_dimension(); }
  void features(Side side, const ConstMatrixRef<double>& x, Index first, FeatureBlock<double> block) const {
    if (--*blocks_ == 0) throw std::runtime_error("no more");
    map_.features(side, x, first, block);
  }

 private:
  CosformerFeatures<double> map_{kD, 200};
  std::shared_ptr<int> blocks_;
};

Matrix<double> some(Index rows, Index cols, std::uint64_t seed) {
  return gaussian<double>(rows, cols, kSeed + seed).cwiseAbs();
}

}  // namespace

TEST_CASE("attention with a memory of another dimension is refused, from one side and from both") {
  const Matrix<double> q = some(20, 6, 0), k = some(20, 6, 1), v = some(20, kDv, 2);
  Matrix<double> out = Matrix<double>::Zero(20, kDv);
  const Windowed window(4, LinearState(EluFeatures<double>(kD), kDv));
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality};
    const auto says = [](const std::exception& e) {
      return std::string(e.what()).find("columns of k: got 6, expected 4") != std::string::npos;
    };
    CHECK_THROWS_MATCHES(attention(window, q, k, v, out, options), std::invalid_argument,
                         Catch::Predicate<std::invalid_argument>(says));
    CHECK_THROWS_MATCHES(attention(AnyMemory<double>(window), q, k, v, out, options), std::invalid_argument,
                         Catch::Predicate<std::invalid_argument>(says));
  }
  CHECK(out.isZero(0));
}

TEST_CASE("any memory goes on where the memory stood that it was made of") {
  const Matrix<double> q = some(40, kD, 0), k = some(40, kD, 1), v = some(40, kDv, 2);
  LinearState state(CosformerFeatures<double>(kD, 100), kDv);
  state.append(k, v);
  AnyMemory<double> any(state);
  CHECK(any.advance(q, k, v) == state.advance(q, k, v));
  CHECK(any.advance(q, k, v) == state.advance(q, k, v));
}

TEST_CASE("after a map has thrown, a memory goes on from the tokens that it took") {
  const Matrix<double> q = some(200, kD, 0), k = some(200, kD, 1), v = some(200, kDv, 2);
  for (const Index window : {0, 5, 70}) {
    for (const int blocks : {1, 2, 3}) {
      CAPTURE(kSeed, window, blocks);
      Windowed memory(window, LinearState(ThrowingFeatures(blocks), kDv));
      const Windowed due_at_first(window, LinearState(CosformerFeatures<double>(kD, 200), kDv));
      CHECK_THROWS_AS(memory.append(k, v), std::runtime_error);
      const Index taken = memory.size();
      REQUIRE(taken <= 200);
      // As one that was given just these.
      auto due = due_at_first;
      due.append(k.topRows(taken), v.topRows(taken));
      const Index rest = 200 - taken;
      const Matrix<double> out = memory.advance(q.bottomRows(rest), k.bottomRows(rest), v.bottomRows(rest));
      CHECK(maximal_error(out, due.advance(q.bottomRows(rest), k.bottomRows(rest), v.bottomRows(rest))) <
            1e-9);
      CHECK(memory.size() == 200);
    }
  }
}

TEST_CASE("what was to stand elsewhere and was not taken moves no position") {
  const Matrix<double> q = some(20, kD, 0), k = some(20, kD, 1), v = some(20, kDv, 2);
  LinearState memory(ThrowingFeatures(2), kDv);
  LinearState due(CosformerFeatures<double>(kD, 200), kDv);
  memory.append(k, v);
  due.append(k, v);
  CHECK_THROWS_AS(memory.append(k, v, {.first = 90}), std::runtime_error);
  CHECK(memory.size() == 20);
  CHECK(memory.advance(q, k, v) == due.advance(q, k, v));
}

TEST_CASE("a window that an exception left loses nothing in a merge") {
  const Matrix<double> k = some(60, kD, 1), v = some(60, kDv, 2);
  Windowed late(5, LinearState(ThrowingFeatures(2), kDv));
  late.append(k.topRows(30), v.topRows(30));
  CHECK_THROWS_AS(late.append(k.bottomRows(30), v.bottomRows(30)), std::runtime_error);
  Windowed all(5, LinearState(ThrowingFeatures(1000), kDv));
  all.append(k.topRows(10), v.topRows(10));
  const Index before = all.size() + late.size();
  all.merge(late);
  CHECK(all.size() == before);
}

TEST_CASE("a merge that throws half way has not begun") {
  const Matrix<double> q = some(9, kD, 0), k = some(40, kD, 1), v = some(40, kDv, 2);
  Windowed due(5, LinearState(CosformerFeatures<double>(kD, 200), kDv));
  due.append(k.topRows(10), v.topRows(10));
  Windowed other(5, LinearState(ThrowingFeatures(1000), kDv));
  other.append(k.bottomRows(30), v.bottomRows(30));
  int thrown = 0;
  for (int blocks = 2; blocks < 12; ++blocks) {
    CAPTURE(kSeed, blocks);
    Windowed memory(5, LinearState(ThrowingFeatures(blocks), kDv));
    memory.append(k.topRows(10), v.topRows(10));
    try {
      memory.merge(other);
    } catch (const std::runtime_error&) {
      ++thrown;
      CHECK(memory.size() == 10);
      CHECK(maximal_error(memory.read(q), due.read(q)) < 1e-12);
    }
  }
  CHECK(thrown > 0);
  CHECK(thrown < 10);
}

TEST_CASE("an output on the log-weights is refused") {
  const Matrix<double> q = some(200, kD, 0), k = some(200, kD, 1), v = some(200, kDv, 2);
  Matrix<double> packed = Matrix<double>::Zero(200, kDv);
  LinearState state(EluFeatures<double>(kD), kDv);
  CHECK_THROWS_AS(state.advance(q, k, v, packed, {.log_weights = packed.col(0)}), std::invalid_argument);
  CHECK(state.size() == 0);
}

TEST_CASE("what a sum depends on is the same in what merges") {
  const Matrix<double> q = some(20, kD, 0), k = some(20, kD, 1), v = some(20, kDv, 2);
  const auto check_refused = [&](auto memory, auto other, const char* what) {
    memory.append(k, v);
    other.append(k, v);
    const Matrix<double> before = memory.read(q);
    CHECK_THROWS_WITH(memory.merge(other), Catch::Contains(what));
    CHECK(memory.read(q) == before);
    CHECK(memory.size() == 20);
    CHECK_NOTHROW(memory.merge(memory));
    CHECK(memory.size() == 40);
  };
  const auto check = [&](const auto& memory, const auto& other, const char* what) {
    check_refused(memory, other, what);
    check_refused(Windowed(3, memory), Windowed(3, other), what);
    check_refused(AnyMemory<double>(memory), AnyMemory<double>(other), what);
  };
  const auto omega = [](std::uint64_t seed) { return sample_projection<double>(8, kD, {.seed = seed}); };
  check(LinearState(PositiveRandomFeatures<double>(omega(1)), kDv),
        LinearState(PositiveRandomFeatures<double>(omega(2)), kDv), "feature map");
  check(LinearState(CosformerFeatures<double>(kD, 100), kDv),
        LinearState(CosformerFeatures<double>(kD, 200), kDv), "feature map");
  check(KeyValueCache(GaussianKernel<double>(1), kDv), KeyValueCache(GaussianKernel<double>(2), kDv),
        "kernel");
  check(LinearState(EluFeatures<double>(kD), kDv), LinearState(EluFeatures<double>(kD), kDv, {.scale = 2}),
        "scale");
  const auto shift = [](double by) {
    const Vector<double> a = Vector<double>::Constant(kD, by);
    return Reparametrisation::shift(a, a);
  };
  using Closure = GaussianClosure<double>;
  check(Closure(shift(0), kDv), Closure(shift(1), kDv), "reparametrisation");
  check(Closure(kD, kDv), Closure(kD, kDv, {.covariance = Covariance::diagonal}), "covariance");
  check(Closure(kD, kDv), Closure(kD, kDv, {.freezing = 1}), "freezing");
  check(Closure(kD, kDv), Closure(kD, kDv, {.clamp = true}), "clamp");
  const Matrix<double> centres = some(4, kD, 3), others = some(4, kD, 4);
  using Mixture = ClosureMixture<double>;
  check(Mixture(centres, shift(0), kDv), Mixture(others, shift(0), kDv), "centres");
  check(Mixture(centres, shift(0), kDv), Mixture(centres, shift(1), kDv), "reparametrisation");
  check(Mixture(centres, shift(0), kDv), Mixture(centres, shift(0), kDv, {.freezing = 1}), "freezing");
  using Clusters = ClusterMemory<double>;
  check(Clusters(centres, shift(0), kDv), Clusters(others, shift(0), kDv), "centres");
  check(Clusters(centres, shift(0), kDv), Clusters(centres, shift(1), kDv), "reparametrisation");
  check(Clusters(centres, shift(0), kDv), Clusters(centres, shift(0), kDv, {.top = 1}), "top");
  check(Clusters(centres, shift(0), kDv), Clusters(centres, shift(0), kDv, {.freezing = 1}), "freezing");
}

TEST_CASE("an output that cannot be told apart from the inputs is written at the end") {
  const Matrix<double> q = some(100, kD, 0), k = some(100, kD, 1), v = some(100, kD, 2);
  const std::vector<Index> order = [] {
    std::vector<Index> rows(100);
    for (Index i = 0; i < 100; ++i) rows[static_cast<std::size_t>(i)] = i * 37 % 100;
    return rows;
  }();
  const auto check = [&](const auto& call) {
    Matrix<double> due(100, kD);
    call(v, due);
    Matrix<double> reversed = v, shuffled = v;
    call(reversed, reversed.colwise().reverse());
    CHECK(reversed.colwise().reverse() == due);
    call(shuffled, shuffled(order, Eigen::all));
    CHECK(shuffled(order, Eigen::all) == due);
  };
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality, .chunk = 16};
    const auto of = [&](const auto& similarity) {
      check([&](const auto& values, auto&& out) {
        attention(similarity, q, k, values, std::forward<decltype(out)>(out), options);
      });
    };
    of(ExponentialKernel<double>());
    of(EluFeatures<double>(kD));
    of(Windowed(4, GaussianClosure<double>(kD, kD)));
  }
  check([&](const auto& values, auto&& out) {
    LinearState(EluFeatures<double>(kD), kD).advance(q, k, values, std::forward<decltype(out)>(out));
  });
}

TEST_CASE("an output whose rows lie on each other is refused") {
  const Matrix<double> q = some(9, kD, 0), k = some(9, kD, 1), v = some(9, kDv, 2);
  std::vector<double> room(100, 0.0);
  using Strided = Eigen::Map<Matrix<double>, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
  const auto call = [&](Index row, Index column) {
    Strided out(room.data(), 9, kDv, {row, column});
    attention(EluFeatures<double>(kD), q, k, v, out);
  };
  for (const auto& [row, column] : {std::pair<Index, Index>{0, 1}, {2, 1}, {3, 0}, {1, 8}}) {
    CAPTURE(row, column);
    CHECK_THROWS_WITH(call(row, column), Catch::Contains("coincide"));
  }
  for (const auto& [row, column] : {std::pair<Index, Index>{3, 1}, {7, 2}, {1, 9}, {2, 30}}) {
    CAPTURE(row, column);
    CHECK_NOTHROW(call(row, column));
  }
  // One row, or one column, has no other to lie on.
  Strided one_row(room.data(), 1, kDv, {0, 1}), one_column(room.data(), 9, 1, {1, 0});
  CHECK_NOTHROW(attention(EluFeatures<double>(kD), q.topRows(1), k, v, one_row));
  CHECK_NOTHROW(attention(EluFeatures<double>(kD), q, k, v.leftCols(1), one_column));
}

TEST_CASE("a memory that was moved from holds nothing, and takes another") {
  const Matrix<double> k = some(20, kD, 1), v = some(20, kDv, 2);
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  const auto check = [&](auto memory) {
    memory.append(k, v);
    auto moved = std::move(memory);
    CHECK(moved.size() == 20);
    CHECK(memory.size() == 0);  // NOLINT: it is what is tested
    memory = moved;
    CHECK(memory.size() == 20);
    CHECK(memory.read(k) == moved.read(k));
    auto assigned = moved;
    assigned.append(k, v);
    assigned = std::move(moved);
    CHECK(assigned.size() == 20);
    CHECK(moved.size() == 0);  // NOLINT
    CHECK(assigned.read(k) == memory.read(k));
  };
  check(LinearState(EluFeatures<double>(kD), kDv));
  check(KeyValueCache(GaussianKernel<double>(1), kDv));
  check(GaussianClosure<double>(kD, kDv));
  check(ClosureMixture<double>(some(4, kD, 3), plain, kDv));
  check(ClusterMemory<double>(some(4, kD, 3), plain, kDv));
  check(Windowed(7, GaussianClosure<double>(kD, kDv)));
  check(AnyMemory<double>(GaussianClosure<double>(kD, kDv)));
}
