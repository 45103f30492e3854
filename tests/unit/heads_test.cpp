// Views of heads: every layout, foreign tensors, storage types, what is refused.

#include <phiattn/attention/head_memories.hpp>
#include <phiattn/attention/heads.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>

#include <array>
#include <stdexcept>
#include <vector>

#include "support/catch.hpp"
#include "support/head_tensors.hpp"
#include "support/thrown.hpp"

using namespace laws;

namespace {

constexpr HeadsShape kShape{2, 3, 4, 5};

/// What a refused call says.
std::string message_of(const std::function<void()>& call) {
  const thrown::Thrown came = thrown::thrown_by(call);
  CHECK(came.kind == "invalid_argument");
  return came.message;
}

/// What numbers 0, 1, 2, ... mean in a layout.
double number(Layout layout, Index b, Index h, Index t, Index c) {
  return static_cast<double>(layout == Layout::bhtd ? ((b * 3 + h) * 4 + t) * 5 + c
                                                    : ((b * 4 + t) * 3 + h) * 5 + c);
}

template <class View>
bool reads_in_order(const View& view, Layout layout) {
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 3; ++h) {
      for (Index t = 0; t < 4; ++t) {
        for (Index c = 0; c < 5; ++c) {
          if (static_cast<double>(view(b, h)(t, c)) != number(layout, b, h, t, c)) return false;
        }
      }
    }
  }
  return true;
}

std::vector<float> counted(Index n) {
  std::vector<float> numbers(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  return numbers;
}

/// Walks like Eigen's TensorMap of four indices, first or last of them contiguous.
template <int Order>
struct Tensor4 {
  static constexpr int NumDimensions = 4;
  enum { Layout = Order };
  float* numbers;
  std::array<Index, 4> extents;
  float* data() const { return numbers; }
  Index dimension(std::size_t i) const { return extents[i]; }
};

/// Walks like a std::mdspan.
struct Span4 {
  const float* numbers;
  std::array<std::size_t, 4> extents, strides;
  static constexpr std::size_t rank() { return 4; }
  const float* data_handle() const { return numbers; }
  std::size_t extent(std::size_t i) const { return extents[i]; }
  std::size_t stride(std::size_t i) const { return strides[i]; }
};

/// Attention of one head of tensors, by the call over matrices.
template <class F, class S>
Matrix<double> due(const F& similarity, const HeadsProblem<S>& problem, Index b, Index h) {
  const auto head = problem.head(b, h);
  return phiattn::attention(similarity, head.q, head.k, head.v, problem.options).template cast<double>();
}

template <class F>
void check_one_for_all(const F& similarity, const AttentionOptions& options) {
  HeadsProblem<float> problem(2, 6, 2, {9, 12, 5, 3}, Layout::bthd, options);
  phiattn::attention(similarity, problem.q.view(), problem.k.view(), problem.v.view(), problem.out.view(),
                     options);
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 6; ++h) {
      CHECK((problem.out.head(b, h).template cast<double>() - due(similarity, problem, b, h))
                .cwiseAbs()
                .maxCoeff() <= 2e-6);
    }
  }
}

}  // namespace

TEST_CASE("a view finds each number in any layout", "[heads]") {
  auto numbers = counted(2 * 3 * 4 * 5);
  for (const auto layout : {Layout::bhtd, Layout::bthd}) {
    CHECK(reads_in_order(Heads<float>(numbers.data(), kShape, layout), layout));
    const Heads<const float> view = Heads<float>(numbers.data(), kShape, layout);
    CHECK(reads_in_order(view, layout));
    const auto part = view.tokens(1, 2).heads(1, 2);
    CHECK(part.shape() == HeadsShape{2, 2, 2, 5});
    CHECK(part(1, 0)(0, 2) == number(layout, 1, 1, 1, 2));
  }
  const HeadsStrides reversed{60, -20, 5, 1};
  CHECK(Heads<float>(numbers.data() + 40, kShape, reversed)(1, 2)(3, 4) == number(Layout::bhtd, 1, 0, 3, 4));
}

TEST_CASE("projections, Eigen's tensors and spans of four indices are views", "[heads]") {
  auto numbers = counted(2 * 3 * 4 * 5);
  Eigen::Map<Matrix<float>> packed(numbers.data(), 8, 15);
  CHECK(reads_in_order(phiattn::packed_heads(packed, 3, 2), Layout::bthd));
  const auto middle = phiattn::packed_heads(packed.middleCols(5, 10), 2, 2);
  CHECK(middle(1, 1)(3, 4) == number(Layout::bthd, 1, 2, 3, 4));
  const Eigen::MatrixXf columns = packed;
  CHECK(reads_in_order(phiattn::packed_heads(columns, 3, 2), Layout::bthd));

  CHECK(reads_in_order(
      phiattn::heads_of(Tensor4<Eigen::RowMajor>{numbers.data(), {2, 3, 4, 5}}, Layout::bhtd), Layout::bhtd));
  CHECK(reads_in_order(
      phiattn::heads_of(Tensor4<Eigen::RowMajor>{numbers.data(), {2, 4, 3, 5}}, Layout::bthd), Layout::bthd));
  const auto first = phiattn::heads_of(Tensor4<Eigen::ColMajor>{numbers.data(), {2, 3, 4, 5}}, Layout::bhtd);
  CHECK(first(1, 2)(3, 4) == 1 + 2 * (2 + 3 * (3 + 4 * 4)));
  CHECK(reads_in_order(phiattn::heads_of(Span4{numbers.data(), {2, 4, 3, 5}, {60, 15, 5, 1}}, Layout::bthd),
                       Layout::bthd));
}

TEST_CASE("one similarity for all heads, wherever queries stand, or one for each", "[heads]") {
  const phiattn::CosformerFeatures<float> cosformer(5, 64);
  for (const auto causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality, .chunk = 4};
    check_one_for_all(phiattn::ExponentialKernel<float>(), options);
    check_one_for_all(phiattn::EluFeatures<float>(5), options);
    check_one_for_all(cosformer, options);
  }
  HeadsProblem<float> problem(1, 4, 2, {7, 7, 5, 3}, Layout::bhtd);
  const std::vector<phiattn::GaussianKernel<float>> each{
      phiattn::GaussianKernel<float>(1), phiattn::GaussianKernel<float>(2), phiattn::GaussianKernel<float>(3),
      phiattn::GaussianKernel<float>(4)};
  phiattn::attention(each, problem.q.view(), problem.k.view(), problem.v.view(), problem.out.view());
  for (Index h = 0; h < 4; ++h) {
    CHECK((problem.out.head(0, h).cast<double>() - due(each[static_cast<std::size_t>(h)], problem, 0, h))
              .cwiseAbs()
              .maxCoeff() <= 2e-6);
  }
}

TEST_CASE("heads come and go as half, bfloat16 and with strides inside", "[heads]") {
  HeadsProblem<float> problem(1, 3, 1, {7, 7, 5, 3}, Layout::bthd);
  const auto& k = problem.k;
  std::vector<Eigen::bfloat16> keys(35);
  Eigen::Map<Eigen::Matrix<Eigen::bfloat16, 7, 5, Eigen::RowMajor>>(keys.data()) =
      k.head(0, 0).cast<Eigen::bfloat16>();
  const Heads<const Eigen::bfloat16> rounded(keys.data(), {1, 1, 7, 5}, Layout::bhtd);
  std::vector<Eigen::half> out(3 * 7 * 3);
  auto spread = Tensor<float>::spread({1, 3, 7, 3});
  const phiattn::ExponentialKernel<float> softmax;
  const Heads<Eigen::half> halves(out.data(), {1, 3, 7, 3}, Layout::bhtd);
  phiattn::attention(softmax, problem.q.view(), rounded, problem.v.view(), halves);
  phiattn::attention(softmax, problem.q.view(), rounded, problem.v.view(), spread.view());
  for (Index h = 0; h < 3; ++h) {
    const Matrix<float> expected =
        phiattn::attention(softmax, problem.q.head(0, h), rounded(0, 0), problem.v.head(0, 0));
    CHECK((halves(0, h).cast<float>() - expected).cwiseAbs().maxCoeff() <= 2e-3);
    CHECK((spread.head(0, h) - expected).cwiseAbs().maxCoeff() <= 2e-6);
  }
}

TEST_CASE("of nothing comes nothing", "[heads]") {
  const phiattn::ExponentialKernel<float> softmax;
  std::vector<float> none(1, 7);
  for (const HeadsShape& of_q : {HeadsShape{0, 2, 3, 4}, HeadsShape{1, 0, 3, 4}, HeadsShape{1, 2, 0, 4}}) {
    HeadsShape of_k = of_q;
    const Heads<float> q(none.data(), of_q, Layout::bhtd), k(none.data(), of_k, Layout::bhtd);
    std::vector<float> other(1);
    CHECK_NOTHROW(phiattn::attention(softmax, q, k, k, Heads<float>(other.data(), of_q, Layout::bhtd)));
  }
  HeadsProblem<float> problem(1, 2, 1, {3, 0, 4, 2}, Layout::bthd);
  phiattn::attention(softmax, problem.q.view(), problem.k.view(), problem.v.view(), problem.out.view());
  CHECK(problem.out.head(0, 1).isZero(0));
}

TEST_CASE("streams that stay are moved when others come or go", "[heads]") {
  const std::vector<float> numbers(2 * 3 * 4);
  const Heads<const float> tokens(numbers.data(), {2, 1, 3, 4}, Layout::bthd);
  phiattn::HeadMemories memories(2, 1, phiattn::KeyValueCache(phiattn::ExponentialKernel<float>(), 4));
  memories.append(tokens, tokens);
  const float* const keys = memories.memory(0, 0).keys().data();
  for (const Index streams : {5, 1}) {
    memories.resize(streams);
    CHECK(memories.memory(0, 0).keys().data() == keys);
    CHECK(memories.size(0) == 3);
  }
}

TEST_CASE("rows that have no normaliser are numbered over batch, heads and tokens", "[heads]") {
  HeadsProblem<float> problem(2, 4, 2, {3, 3, 5, 2}, Layout::bthd, {.causality = Causality::causal});
  problem.q.view()(1, 3).row(2).setConstant(std::numeric_limits<float>::quiet_NaN());
  problem.q.view()(1, 2).row(2).setConstant(std::numeric_limits<float>::quiet_NaN());
  const auto status = phiattn::attention(phiattn::EluFeatures<float>(5), problem.q.view(), problem.k.view(),
                                         problem.v.view(), problem.out.view(), problem.options);
  CHECK(status.nonpositive_rows == 2);
  CHECK(status.first_nonpositive_row == (1 * 4 + 2) * 3 + 2);
}

TEST_CASE("a row of a later block is numbered among all of its head", "[heads]") {
  HeadsProblem<float> problem(1, 2, 1, {70, 70, 5, 2}, Layout::bthd, {.chunk = 16});
  problem.q.view()(0, 1).row(69).setConstant(std::numeric_limits<float>::quiet_NaN());
  const auto status =
      phiattn::attention(phiattn::ExponentialKernel<float>(), problem.q.view(), problem.k.view(),
                         problem.v.view(), problem.out.view(), problem.options);
  CHECK(status.nonpositive_rows == 1);
  CHECK(status.first_nonpositive_row == 70 + 69);
}

TEST_CASE("all heads of a stream are truncated, or none", "[heads]") {
  HeadsProblem<float> problem(1, 2, 2, {3, 3, 5, 2}, Layout::bthd);
  using Any = phiattn::AnyMemory<float>;
  phiattn::HeadMemories<Any> memories(
      1, std::vector<Any>{phiattn::KeyValueCache(phiattn::ExponentialKernel<float>(), 2),
                          phiattn::LinearState(phiattn::EluFeatures<float>(5), 2)});
  memories.append(problem.k.view(), problem.v.view());
  CHECK_THROWS_AS(memories.truncate(0, 1), std::invalid_argument);
  CHECK(memories.memory(0, 0).size() == 3);
  CHECK(memories.memory(0, 1).size() == 3);
}

TEST_CASE("shapes and places that do not fit are named, and nothing is written", "[heads]") {
  const phiattn::ExponentialKernel<float> softmax;
  std::vector<float> in(1000, 1), result(1000, 7);
  const auto heads = [&](HeadsShape shape) { return Heads<const float>(in.data(), shape, Layout::bhtd); };
  const auto out = [&](HeadsShape shape) { return Heads<float>(result.data(), shape, Layout::bhtd); };
  const HeadsShape q{2, 4, 3, 5}, k{2, 2, 6, 5}, v{2, 2, 6, 4}, o{2, 4, 3, 4};
  const auto refused = [&](HeadsShape of_q, HeadsShape of_k, HeadsShape of_v, HeadsShape of_out) {
    return message_of(
        [&] { phiattn::attention(softmax, heads(of_q), heads(of_k), heads(of_v), out(of_out)); });
  };
  CHECK(refused(q, {1, 2, 6, 5}, v, o) == "phiattn: batch of k: got 1, expected 2 (batch of q)");
  CHECK(refused(q, {2, 3, 6, 5}, {2, 3, 6, 4}, o) ==
        "phiattn: remainder of the heads of q over those of k: got 1, expected 0 (none)");
  CHECK(refused(q, k, {2, 1, 6, 4}, o) == "phiattn: heads of v: got 1, expected 2 (heads of k)");
  CHECK(refused(q, {2, 2, 6, 3}, v, o) == "phiattn: dim of q: got 5, expected 3 (dim of k)");
  CHECK(refused(q, k, {2, 2, 5, 4}, o) == "phiattn: tokens of v: got 5, expected 6 (tokens of k)");
  CHECK(refused(q, k, v, {2, 4, 3, 5}) == "phiattn: dim of out: got 5, expected 4 (dim of v)");
  CHECK(refused(q, k, v, {2, 2, 3, 4}) == "phiattn: heads of out: got 2, expected 4 (heads of q)");

  const Heads<float> on_q(in.data() + 100, o, Layout::bhtd);
  CHECK(message_of([&] { phiattn::attention(softmax, heads(q), heads(k), heads(v), on_q); }) ==
        "phiattn: out shares memory with q; it must be apart from the inputs");
  const Heads<float> folded(result.data(), o, HeadsStrides{48, 4, 4, 1});
  CHECK(message_of([&] { phiattn::attention(softmax, heads(q), heads(k), heads(v), folded); }) ==
        "phiattn: out: its elements coincide in memory; each needs a place of its own");
  CHECK(std::count(result.begin(), result.end(), 7.0F) == 1000);

  // q, k, v and the result side by side in one buffer are apart.
  Matrix<float> all = Matrix<float>::Ones(3, 4 * 5);
  CHECK_NOTHROW(phiattn::attention(
      softmax, phiattn::packed_heads(all.leftCols(5), 1), phiattn::packed_heads(all.middleCols(5, 5), 1),
      phiattn::packed_heads(all.middleCols(10, 5), 1), phiattn::packed_heads(all.rightCols(5), 1)));
}

TEST_CASE("memories of heads refuse what does not fit and take nothing", "[heads]") {
  HeadsProblem<float> problem(2, 4, 2, {3, 3, 5, 2}, Layout::bthd);
  phiattn::HeadMemories memories(2, 2, phiattn::KeyValueCache(phiattn::ExponentialKernel<float>(), 2));
  const auto q = problem.q.view();
  const auto k = problem.k.view(), v = problem.v.view(), out = problem.out.view();
  CHECK(message_of([&] { memories.append(k.heads(0, 1), v.heads(0, 1)); }) ==
        "phiattn: heads of k: got 1, expected 2 (kv_heads)");
  CHECK(message_of([&] { memories.append(k, v.tokens(0, 2)); }) ==
        "phiattn: tokens of v: got 2, expected 3 (tokens of k)");
  CHECK(message_of([&] { memories.advance(q.tokens(0, 2), k, v, out.tokens(0, 2)); }) ==
        "phiattn: tokens of q: got 2, expected 3 (tokens of k)");
  CHECK(message_of([&] { memories.advance(q.heads(0, 3), k, v, out.heads(0, 3)); }) ==
        "phiattn: remainder of the heads of q over kv_heads: got 1, expected 0 (none)");
  const Index twice[] = {1, 1}, beyond[] = {0, 2};
  CHECK(message_of([&] { memories.append(k, v, {.streams = twice}); }) == "phiattn: streams: got 1 twice");
  CHECK(message_of([&] { memories.append(k, v, {.streams = beyond}); }) ==
        "phiattn: stream: got 2, expected one of 2, counted from 0");
  CHECK(message_of([&] { memories.append(k, v, {.log_weights = Matrix<float>::Zero(2, 4)}); }) ==
        "phiattn: columns of log_weights: got 4, expected 3 (tokens of k)");
  CHECK(message_of([&] {
          memories.advance(q, k, v, Heads<float>(k.data(), {2, 4, 3, 2}, Layout::bthd));
        }) == "phiattn: out shares memory with k; it must be apart from the inputs");
  Matrix<float> numbers = Matrix<float>::Zero(1, 2 * 4 * 3 * 2);
  const Heads<float> over(numbers.data(), {2, 4, 3, 2}, Layout::bthd);
  for (const Index first : {0, 20, 42}) {  // in the first head, in the middle, in the last
    const Eigen::Map<const Matrix<float>> log_weights(numbers.data() + first, 2, 3);
    CHECK(message_of([&] { memories.advance(q, k, v, over, {.log_weights = log_weights}); }) ==
          "phiattn: out shares memory with log_weights; it must be apart from the inputs");
  }
  CHECK(numbers.isZero(0));
  CHECK(memories.size(0) == 0);
  CHECK(memories.size(1) == 0);
}

TEST_CASE("offsets of sequences begin with 0, never fall and end with the rows", "[heads]") {
  const auto refused = [](std::vector<int> of_q, std::vector<int> of_k) {
    return message_of([&] {
      phiattn::attention(phiattn::ExponentialKernel<float>(), Matrix<float>::Ones(4, 2),
                         Matrix<float>::Ones(5, 2), Matrix<float>::Ones(5, 1), {},
                         phiattn::Sequences{of_q, of_k});
    });
  };
  CHECK(refused({0, 4}, {0, 2, 5}) ==
        "phiattn: number of key_offsets: got 3, expected 2 (number of query_offsets)");
  CHECK(refused({1, 4}, {0, 5}) == "phiattn: first of query_offsets: got 1, expected 0 (0)");
  CHECK(refused({0, 4, 3, 4}, {0, 0, 0, 5}) == "phiattn: query_offsets: got 3, expected at least 4");
  CHECK(refused({0, 3}, {0, 5}) == "phiattn: last of query_offsets: got 3, expected 4 (rows of q)");
  CHECK(refused({}, {}) == "phiattn: query_offsets: got none, expected one more than there are sequences");
}
