// Bad calls of attention and of memories: which exception, what it says, and that nothing was written.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <cstring>
#include <limits>

#include "support/thrown.hpp"

using namespace phiattn;
using namespace thrown;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool same_bits(const Matrix<float>& a, const Matrix<float>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
}

constexpr Index kD = 4;
constexpr Index kDv = 3;

const ExponentialKernel<float> kSoftmax;
const PositiveRandomFeatures<float>& favor() {
  static const PositiveRandomFeatures<float> map(some(8, kD));
  return map;
}

template <class F>
auto empty_memory(const F& similarity, Index dv = kDv, const AttentionOptions& options = {}) {
  if constexpr (Kernel<F>) {
    return KeyValueCache<F>(similarity, dv, options);
  } else {
    return LinearState<F>(similarity, dv, options);
  }
}

template <class F>
void check_attention_refuses(const F& similarity) {
  const Matrix<float> q = some(5, kD), k = some(7, kD), v = some(7, kDv);
  const Matrix<float> sentinel = Matrix<float>::Constant(5, kDv, kNaN);
  Matrix<float> out = sentinel;
  Matrix<float> low = Matrix<float>::Constant(4, kDv, kNaN),
                narrow = Matrix<float>::Constant(5, kDv - 1, kNaN);
  const Matrix<float> low_before = low, narrow_before = narrow;
  const auto with = [](auto change) {
    AttentionOptions options;
    change(options);
    return options;
  };
  const auto run = [&](const AttentionOptions& options) { attention(similarity, q, k, v, out, options); };

  auto filled = empty_memory(similarity);
  filled.append(k, v);
  const BadCall table[] = {
      {"columns of q", [&] { attention(similarity, some(5, 6), k, v, out); }, {"columns of q", "6", "4"}},
      {"columns of k", [&] { attention(similarity, q, some(7, 6), v, out); }, {"columns of", "6", "4"}},
      {"rows of v",
       [&] { attention(similarity, q, k, some(8, kDv), out); },
       {"rows of v", "8", "7", "rows of k"}},
      {"rows of out", [&] { attention(similarity, q, k, v, low); }, {"rows of out", "4", "5", "rows of q"}},
      {"columns of out",
       [&] { attention(similarity, q, k, v, narrow); },
       {"columns of out", "2", "3", "columns of v"}},
      {"scale 0", [&] { run(with([](auto& o) { o.scale = 0; })); }, {"scale", "0.0", "positive finite"}},
      {"scale -1", [&] { run(with([](auto& o) { o.scale = -1; })); }, {"scale", "-1.0", "positive finite"}},
      {"scale NaN", [&] { run(with([](auto& o) { o.scale = kNaN; })); }, {"scale", "nan", "positive finite"}},
      {"scale inf",
       [&] { run(with([](auto& o) { o.scale = kInfinity; })); },
       {"scale", "inf", "positive finite"}},
      {"chunk 0", [&] { run(with([](auto& o) { o.chunk = 0; })); }, {"chunk", "0", "1"}},
      {"chunk -3", [&] { run(with([](auto& o) { o.chunk = -3; })); }, {"chunk", "-3", "1"}},
      {"memory not empty", [&] { attention(filled, q, k, v, out); }, {"size of the memory", "7", "0"}},
      {"scale of a memory",
       [&] { attention(empty_memory(similarity), q, k, v, out, with([](auto& o) { o.scale = 1; })); },
       {"scale", "memory"}},
      {"memory, columns of v",
       [&] { attention(empty_memory(similarity, 5), q, k, v, out); },
       {"columns of v", "3", "5"}},
      {"memory, rows of out",
       [&] { attention(empty_memory(similarity), q, k, v, low); },
       {"rows of out", "4", "5"}},
      {"negative dv", [&] { empty_memory(similarity, -1); }, {"dv", "-1", "0"}},
      {"memory of scale 0",
       [&] { empty_memory(similarity, 1, with([](auto& o) { o.scale = 0; })); },
       {"scale", "0.0"}},
      {"memory of chunk 0",
       [&] { empty_memory(similarity, 1, with([](auto& o) { o.chunk = 0; })); },
       {"chunk", "0"}},
  };
  for (const BadCall& bad : table) check_thrown(bad);
  // Causal calls check the same.
  const AttentionOptions causal{.causality = Causality::causal};
  check_thrown(
      {"causal", [&] { attention(similarity, q, k, some(6, kDv), out, causal); }, {"rows of v", "6", "7"}});

  CHECK(same_bits(out, sentinel));
  CHECK(same_bits(low, low_before));
  CHECK(same_bits(narrow, narrow_before));
  CHECK(filled.size() == 7);
}

template <class F>
void check_memory_refuses(const F& similarity) {
  const Matrix<float> q = some(5, kD), k = some(5, kD), v = some(5, kDv), log_weights = some(5, 1);
  const Matrix<float> sentinel = Matrix<float>::Constant(5, kDv, kNaN);
  Matrix<float> out = sentinel;
  Matrix<float> low = Matrix<float>::Constant(4, kDv, kNaN);
  auto memory = empty_memory(similarity);
  memory.append(k, v, log_weights);
  const Partial<float> before = memory.read_partial(q);

  auto wide = empty_memory(similarity, 5);
  wide.append(k, some(5, 5));
  auto rescaled = empty_memory(similarity, kDv, {.scale = 0.125});
  rescaled.append(k, v);
  const BadCall table[] = {
      {"append, columns of k", [&] { memory.append(some(5, 6), v); }, {"columns of k", "6", "4"}},
      {"append, columns of v", [&] { memory.append(k, some(5, 2)); }, {"columns of v", "2", "3"}},
      {"append, rows of v", [&] { memory.append(k, some(6, kDv)); }, {"rows of v", "6", "5"}},
      {"append, log_weights", [&] { memory.append(k, v, some(4, 1)); }, {"log_weights", "4", "5"}},
      {"append, log_weights as a row", [&] { memory.append(k, v, some(1, 6)); }, {"log_weights", "6", "5"}},
      {"append, log_weights a matrix",
       [&] { memory.append(some(4, kD), some(4, kDv), some(2, 2)); },
       {"log_weights", "2", "vector"}},
      {"read, columns of q", [&] { memory.read(some(5, 6)); }, {"columns of q", "6", "4"}},
      {"read into, columns of q", [&] { memory.read(some(5, 6), out); }, {"columns of q", "6", "4"}},
      {"read into, rows of out", [&] { memory.read(q, low); }, {"rows of out", "4", "5"}},
      {"read_partial, columns of q", [&] { memory.read_partial(some(5, 6)); }, {"columns of q", "6", "4"}},
      {"advance, columns of q", [&] { memory.advance(some(5, 6), k, v, out); }, {"columns of q", "6", "4"}},
      {"advance, columns of q and k",
       [&] { memory.advance(some(5, 6), some(5, 6), v, out); },
       {"columns of", "6", "4"}},
      {"advance, rows of q", [&] { memory.advance(some(4, kD), k, v, low); }, {"rows of q", "4", "5"}},
      {"advance, rows of v", [&] { memory.advance(q, k, some(6, kDv), out); }, {"rows of v", "6", "5"}},
      {"advance, columns of v", [&] { memory.advance(q, k, some(5, 2), out); }, {"columns of", "2", "3"}},
      {"advance, rows of out", [&] { memory.advance(q, k, v, low); }, {"rows of out", "4", "5"}},
      {"merge, dv", [&] { memory.merge(wide); }, {"dv", "5", "3"}},
      {"merge, scale", [&] { memory.merge(rescaled); }, {"scale"}},
  };
  for (const BadCall& bad : table) {
    check_thrown(bad);
    CAPTURE(bad.name);
    CHECK(memory.size() == 5);
    const Partial<float> after = memory.read_partial(q);
    CHECK(same_bits(after.out, before.out));
    CHECK(same_bits(after.log_normaliser, before.log_normaliser));
    CHECK(same_bits(after.sign, before.sign));
  }
  CHECK(same_bits(out, sentinel));
  CHECK(same_bits(low, sentinel.topRows(4)));
}

}  // namespace

TEST_CASE("attention refuses bad calls, naming argument and sizes, and writes nothing", "[errors]") {
  SECTION("kernel") { check_attention_refuses(kSoftmax); }
  SECTION("feature map") { check_attention_refuses(favor()); }
}

TEST_CASE("a memory refuses bad calls and stays as it was", "[errors]") {
  SECTION("kernel") { check_memory_refuses(kSoftmax); }
  SECTION("feature map") { check_memory_refuses(favor()); }
}

TEST_CASE("a memory is told nothing that is a matter of calls", "[errors]") {
  struct Ignored {
    AttentionOptions options;
    const char* name;
  };
  const Ignored all[] = {{{.causality = Causality::causal}, "causality"},
                         {{.query_offset = 0}, "query_offset"},
                         {{.alignment = Alignment::first}, "alignment"}};
  const Matrix<double> centres = Matrix<double>::Zero(1, kD);
  const auto identity = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  for (const Ignored& ignored : all) {
    const AttentionOptions& options = ignored.options;
    const char* const name = ignored.name;
    const BadCall table[] = {
        {"state", [&] { LinearState(favor(), kDv, options); }, {name, "memory"}},
        {"cache", [&] { KeyValueCache(kSoftmax, kDv, options); }, {name, "memory"}},
        {"closure", [&] { GaussianClosure<float>(kD, kDv, {}, options); }, {name, "memory"}},
        {"mixture", [&] { ClosureMixture<float>(centres, identity, kDv, {}, options); }, {name, "memory"}},
        {"clusters", [&] { ClusterMemory<float>(centres, identity, kDv, {}, options); }, {name, "memory"}},
        {"window", [&] { Windowed(4, KeyValueCache(kSoftmax, kDv), options); }, {name, "memory"}}};
    for (const BadCall& bad : table) check_thrown(bad);
  }
}

TEST_CASE("a cache takes its dimension from what it was first given", "[errors]") {
  const Matrix<float> k = some(2, kD), v = some(2, kDv), k6 = some(2, 6);
  KeyValueCache<ExponentialKernel<float>> cache(kSoftmax, kDv), other(kSoftmax, kDv);

  // A refused first append fixes nothing.
  check_thrown({"rows of v", [&] { cache.append(k6, some(3, kDv)); }, {"rows of v", "3", "2"}});
  cache.append(k, v);
  other.append(k6, v);
  check_thrown({"append", [&] { cache.append(k6, v); }, {"columns of k", "6", "4"}});
  check_thrown({"read", [&] { cache.read(k6); }, {"columns of q", "6", "4"}});
  check_thrown({"merge", [&] { cache.merge(other); }, {"6", "4"}});
  CHECK(cache.size() == 2);
}

TEST_CASE("states of maps with other features do not merge", "[errors]") {
  LinearState<PositiveRandomFeatures<float>> state(favor(), kDv);
  const LinearState<PositiveRandomFeatures<float>> other(PositiveRandomFeatures<float>(some(9, kD)), kDv);
  check_thrown({"features", [&] { state.merge(other); }, {"features", "9", "8"}});
}

TEST_CASE("a map of another dimension is refused, naming it", "[errors]") {
  const Matrix<float> x = some(5, 6), v = some(5, kDv);
  check_thrown({"map", [&] { attention(favor(), x, x, v); }, {"columns of q", "6", "4", "dimension"}});
}

TEST_CASE("partial results over other queries or values do not combine", "[errors]") {
  const auto partial = [](Index rows, Index cols) { return Partial<float>::empty(rows, cols); };
  check_thrown({"rows", [&] { combine(partial(3, 2), partial(4, 2)); }, {"rows", "4", "3"}});
  check_thrown({"columns", [&] { combine(partial(3, 2), partial(3, 5)); }, {"columns", "5", "2"}});
}

TEST_CASE("an output must be apart from the inputs", "[errors]") {
  Matrix<float> q = some(5, kD), k = some(5, kD), v = some(5, kD);
  const Matrix<float> q0 = q, k0 = k, v0 = v;
  const auto check_refused = [&](const auto& similarity) {
    for (const AttentionOptions& options :
         {AttentionOptions{}, AttentionOptions{.causality = Causality::causal}}) {
      check_thrown(
          {"q", [&] { attention(similarity, q, k, v, q, options); }, {"out", "shares memory with q"}});
      check_thrown(
          {"k", [&] { attention(similarity, q, k, v, k, options); }, {"out", "shares memory with k"}});
      check_thrown(
          {"v", [&] { attention(similarity, q, k, v, v, options); }, {"out", "shares memory with v"}});
    }
    auto memory = empty_memory(similarity, kD);
    check_thrown({"advance", [&] { memory.advance(q, k, v, v); }, {"out", "shares memory with v"}});
    check_thrown({"read", [&] { memory.read(q, q); }, {"out", "shares memory with q"}});
    CHECK(memory.size() == 0);
  };
  check_refused(kSoftmax);
  check_refused(favor());
  CHECK(same_bits(q, q0));
  CHECK(same_bits(k, k0));
  CHECK(same_bits(v, v0));
}
