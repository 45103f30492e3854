// Results go out into every kind of Eigen expression, and are what is returned otherwise.
#include <phiattn/attention/attention.hpp>

#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/tokens.hpp"

using namespace phiattn;
using namespace tokens;

namespace {

/// What attention writes into `out` is what it returns.
void write_to(const Output<float>& out) {
  const Sample t;
  CHECK(attention(t.map, t.q, t.k, t.v, out, kOptions).ok());
}

template <class Out>
void check_goes_out(Out&& out) {
  write_to(std::forward<Out>(out));
  const Sample t;
  const Matrix<float> written = out.matrix().template cast<float>();
  CHECK(written == attention(t.map, t.q, t.k, t.v, kOptions));
}

}  // namespace

TEST_CASE("outputs of any storage order, stride and view", "[output]") {
  const float rest = -77;
  SECTION("row-major") {
    Matrix<float> out(kNq, kDv);
    check_goes_out(out);
  }
  SECTION("column-major") {
    ColumnMajor out(kNq, kDv);
    check_goes_out(out);
  }
  SECTION("fixed size") {
    Eigen::Matrix<float, kNq, kDv> out;
    check_goes_out(out);
  }
  SECTION("temporary blocks, and nothing around them") {
    Matrix<float> out = Matrix<float>::Constant(kNq + 4, kDv + 2, rest);
    check_goes_out(out.block(3, 1, kNq, kDv));
    out.block(3, 1, kNq, kDv).setConstant(rest);
    CHECK((out.array() == rest).all());
    Matrix<float> tall(kNq + 1, kDv);
    check_goes_out(tall.topRows(kNq));
  }
  SECTION("transpose") {
    Matrix<float> out(kDv, kNq);
    check_goes_out(out.transpose());
  }
  SECTION("map with strides, and nothing between") {
    using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
    std::vector<float> numbers(kNq * 2 * (kDv + 1), rest);
    Eigen::Map<Matrix<float>, 0, Strides> out(numbers.data(), kNq, kDv, Strides(2 * (kDv + 1), 2));
    check_goes_out(out);
    for (std::size_t i = 1; i < numbers.size(); i += 2) CHECK(numbers[i] == rest);
  }
  SECTION("array") {
    Eigen::ArrayXXf out(kNq, kDv);
    check_goes_out(out);
    Matrix<float> matrix(kNq, kDv);
    check_goes_out(matrix.array());
  }
  SECTION("Ref") {
    Matrix<float> out(kNq, kDv);
    Eigen::Ref<Matrix<float>> ref(out);
    check_goes_out(ref);
  }
  SECTION("double out of float") {
    Matrix<double> out(kNq, kDv);
    check_goes_out(out);
  }
  SECTION("indexed view") {
    Matrix<float> out(kNq, 2 * kDv);
    const std::vector<int> columns = {4, 0, 2};
    check_goes_out(out(Eigen::seqN(0, kNq), columns));
  }
}

TEST_CASE("memories read and advance into the same kinds of outputs", "[output]") {
  const Sample t;
  const Matrix<float> k = t.k.topRows(kNq), v = t.v.topRows(kNq);
  const auto check = [&](const auto& empty) {
    auto plain = empty, memory = empty;
    const Matrix<float> advanced = plain.advance(t.q, k, v);
    ColumnMajor out(kNq + 1, kDv);
    memory.advance(t.q, k, v, out.bottomRows(kNq));
    CHECK(out.bottomRows(kNq) == advanced);
    memory.read(t.q, out.topRows(kNq));
    CHECK(out.topRows(kNq) == memory.read(t.q));
    Matrix<Eigen::bfloat16> narrow(kNq, kDv);
    memory.read(t.q, narrow);
    CHECK(narrow == memory.read(t.q).template cast<Eigen::bfloat16>());
  };
  check(KeyValueCache<ExponentialKernel<float>>(t.kernel, kDv, kOptions));
  check(LinearState<PositiveRandomFeatures<float>>(t.map, kDv, kOptions));
}

TEST_CASE("q, k, v and out as the columns of one packed buffer", "[output]") {
  const Sample t;
  const Matrix<float> q = t.k.topRows(kNq), k = some<float>(kNq, kD, 5), v = some<float>(kNq, kDv, 6);
  Matrix<float> packed(kNq, 2 * kD + 2 * kDv);
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality, .chunk = 4};
    packed << q, k, v, Matrix<float>::Zero(kNq, kDv);
    attention(t.map, packed.leftCols(kD), packed.middleCols(kD, kD), packed.middleCols(2 * kD, kDv),
              packed.rightCols(kDv), options);
    CHECK(packed.rightCols(kDv) == attention(t.map, q, k, v, options));
    CHECK(packed.leftCols(kD) == q);
    CHECK(packed.middleCols(kD, kD) == k);
    CHECK(packed.middleCols(2 * kD, kDv) == v);
  }
  // Rows of one buffer, too: new tokens above, the output below.
  Matrix<float> stacked(2 * kNq, kD);
  stacked << q, k;
  attention(t.kernel, q, q, v, stacked.bottomRows(kNq).leftCols(kDv));
  CHECK(stacked.topRows(kNq) == q);
  // One column too many, and out runs into v.
  CHECK_THROWS_AS(attention(t.map, packed.leftCols(kD), packed.middleCols(kD, kD),
                            packed.middleCols(2 * kD, kDv), packed.middleCols(2 * kD + 1, kDv)),
                  std::invalid_argument);
  CHECK_THROWS_AS(attention(t.map, packed.leftCols(kD), packed.middleCols(kD, kD),
                            packed.middleCols(2 * kD, kDv), packed.leftCols(kDv)),
                  std::invalid_argument);
}

TEST_CASE("an input of another layout than the output shares what lies between the output's rows",
          "[output]") {
  const Sample t;
  Matrix<float> packed = Matrix<float>::Zero(kNq, 2 * kD + 2 * kDv);
  const Eigen::Map<const ColumnMajor> columns(packed.data(), kNq, kD);
  CHECK_THROWS_AS(attention(t.map, columns, t.k, t.v, packed.rightCols(kDv)), std::invalid_argument);
  CHECK(packed.isZero(0));
}

TEST_CASE("a slice of an output is its rows, in place or through an expression", "[output]") {
  const Matrix<float> numbers = some<float>(3, kDv);
  const auto check = [&](auto&& out) {
    const Output<float> whole(out);
    whole.slice(1, 4).slice(2, 2).store(0, numbers.topRows(2));
    whole.slice(4, 2).store(1, numbers.bottomRows(1));
    CHECK(out.topRows(3).isZero(0));
    CHECK(out.bottomRows(3) == numbers);
  };
  Matrix<float> plain = Matrix<float>::Zero(6, kDv), behind = plain;
  check(plain);
  check(behind.colwise().reverse());
}

TEST_CASE("options are never taken for an output", "[output]") {
  const Sample t;
  AttentionOptions options{.causality = Causality::causal};
  const AttentionOptions constant = options;
  const Matrix<float> expected = attention(t.map, t.q, t.k, t.v, constant);
  // Every one of these returns the matrix, not the status.
  const auto is_matrix = [&](const Matrix<float>& out) { return out == expected; };
  CHECK(is_matrix(attention(t.map, t.q, t.k, t.v, options)));
  CHECK(is_matrix(attention(t.map, t.q, t.k, t.v, AttentionOptions{options})));
  CHECK(is_matrix(attention(t.map, t.q, t.k, t.v, {.causality = Causality::causal})));
  CHECK(is_matrix(attention(t.kernel, t.q, t.k, t.v, options)) == false);
  CHECK(attention(t.map, t.q, t.k, t.v, {}) == attention(t.map, t.q, t.k, t.v));
  static_assert(!std::is_constructible_v<Output<float>, AttentionOptions&>);
  static_assert(!std::is_constructible_v<Output<float>, const AttentionOptions&>);
  static_assert(!std::is_constructible_v<Output<float>, const Matrix<float>&>);
  static_assert(!std::is_constructible_v<Output<float>, Matrix<float>>);
  static_assert(std::is_constructible_v<Output<float>, Matrix<float>&>);
  static_assert(std::is_constructible_v<Output<float>, Eigen::Block<Matrix<float>>>);

  Matrix<float> out(kNq, kDv);
  attention(t.map, t.q, t.k, t.v, out, options);
  CHECK(out == expected);
  attention(t.map, t.q, t.k, t.v, out, {.causality = Causality::causal});
  CHECK(out == expected);
}
