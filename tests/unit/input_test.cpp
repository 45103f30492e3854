// Every kind of Eigen expression comes in, and gives what plain matrices give.
#include <phiattn/attention/attention.hpp>
#include <phiattn/core/heads.hpp>

#include <vector>

#include "support/catch.hpp"
#include "support/tokens.hpp"

using namespace phiattn;
using namespace tokens;

namespace {

/// Rounded to the grid of T, so that storing it in T changes nothing.
template <class T>
Matrix<float> on_grid(const Matrix<float>& x) {
  return x.cast<T>().template cast<float>();
}

/// Attention with queries, keys or values given as x is bit for bit that with the plain matrix of the same numbers.
void check_same(const Input<float>& x, const Matrix<float>& plain) {
  const Sample t;
  REQUIRE(plain.rows() == kNk);
  REQUIRE(plain.cols() == kD);
  CHECK(attention(t.map, t.q, x, t.v, kOptions) == attention(t.map, t.q, plain, t.v, kOptions));
  CHECK(attention(t.kernel, t.q, x, t.v, kOptions) == attention(t.kernel, t.q, plain, t.v, kOptions));
  CHECK(attention(t.map, t.q, t.k, x, kOptions) == attention(t.map, t.q, t.k, plain, kOptions));
  CHECK(attention(t.kernel, t.q, t.k, x, kOptions) == attention(t.kernel, t.q, t.k, plain, kOptions));
  CHECK(attention(t.map, x, t.k, t.v, kOptions) == attention(t.map, plain, t.k, t.v, kOptions));
  CHECK(attention(t.kernel, x, t.k, t.v, kOptions) == attention(t.kernel, plain, t.k, t.v, kOptions));
}

template <class X>
void check_comes_in(const X& x) {
  check_same(x, x.matrix());
}

}  // namespace

TEST_CASE("inputs of any storage order, stride and view", "[input]") {
  const Matrix<float> x = some<float>(kNk, kD, 5);
  SECTION("row-major") { check_comes_in(x); }
  SECTION("column-major") { check_comes_in(ColumnMajor(x)); }
  SECTION("fixed size") {
    check_comes_in(Eigen::Matrix<float, kNk, kD>(x));
    check_comes_in(Eigen::Matrix<float, kNk, kD, Eigen::RowMajor>(x));
  }
  SECTION("fixed number of columns") { check_comes_in(Eigen::Matrix<float, Eigen::Dynamic, kD>(x)); }
  SECTION("transpose") {
    const Matrix<float> transposed = x.transpose();
    check_comes_in(transposed.transpose());
    const ColumnMajor columns = x.transpose();
    check_comes_in(columns.transpose());
  }
  SECTION("blocks of a larger matrix") {
    const Matrix<float> rows = some<float>(kNk + 3, kD + 5, 6);
    const ColumnMajor columns = rows;
    check_comes_in(rows.block(2, 3, kNk, kD));
    check_comes_in(columns.block(2, 3, kNk, kD));
    check_comes_in(columns.block(2, 3, kNk, kD).topRows(kNk).leftCols(kD));
  }
  SECTION("array") {
    check_comes_in(x.array());
    check_comes_in(Eigen::ArrayXXf(x.array()));
  }
  SECTION("Ref") { check_comes_in(Eigen::Ref<const Matrix<float>>(x)); }
  SECTION("indexed views") {
    const Matrix<float> wide = some<float>(2 * kNk, 2 * kD, 7);
    const std::vector<int> odd = {7, 1, 5, 3};
    check_comes_in(wide(Eigen::seqN(0, kNk, 2), odd));
    check_comes_in(wide(Eigen::seqN(1, kNk), Eigen::seqN(0, kD)));
    check_comes_in(wide(Eigen::seqN(0, kNk, Eigen::fix<2>), Eigen::seqN(0, kD, Eigen::fix<2>)));
  }
  SECTION("reversed") { check_comes_in(x.reverse()); }
}

TEST_CASE("inputs from maps with strides, zero strides included", "[input]") {
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const std::vector<float> numbers = [] {
    const Matrix<float> x = some<float>(1, 400, 8);
    return std::vector<float>(x.data(), x.data() + x.size());
  }();
  const auto row_major = [&](Index outer, Index inner) {
    return Eigen::Map<const Matrix<float>, 0, Strides>(numbers.data(), kNk, kD, Strides(outer, inner));
  };
  const auto column_major = [&](Index outer, Index inner) {
    return Eigen::Map<const ColumnMajor, 0, Strides>(numbers.data(), kNk, kD, Strides(outer, inner));
  };
  SECTION("contiguous rows") { check_comes_in(row_major(kD + 2, 1)); }
  SECTION("inner and outer stride") {
    check_comes_in(row_major(3 * kD + 1, 3));
    check_comes_in(column_major(2 * kNk + 5, 2));
  }
  SECTION("rows that overlap: a sliding window") { check_comes_in(row_major(1, 1)); }
  SECTION("broadcast along rows") { check_comes_in(row_major(0, 1)); }
  SECTION("broadcast along columns") { check_comes_in(row_major(1, 0)); }
  SECTION("broadcast along both") { check_comes_in(column_major(0, 0)); }
}

TEST_CASE("a vector is n tokens of one number", "[input]") {
  const Vector<float> q = some<float>(kNq, 1), k = some<float>(kNk, 1), v = some<float>(kNk, 1, 2);
  const ExponentialKernel<float> kernel;
  const Matrix<float> out = attention(kernel, q, k, v, kOptions);
  CHECK(out == attention(kernel, Matrix<float>(q), Matrix<float>(k), Matrix<float>(v), kOptions));

  Vector<float> into(kNq);
  attention(kernel, q, k, v, into, kOptions);
  CHECK(into == out);
  const Eigen::Vector4f fixed(1, 2, 3, 4);
  CHECK(attention(kernel, fixed, fixed, fixed).rows() == 4);
  // A row of a matrix is one token.
  const Sample t;
  CHECK(attention(t.kernel, t.q.row(2), t.k, t.v) ==
        attention(t.kernel, Matrix<float>(t.q.row(2)), t.k, t.v));
}

TEST_CASE("an expression that costs something is evaluated once", "[input]") {
  const Sample t;
  Index evaluated = 0;
  const auto counted = t.k.unaryExpr([&evaluated](float x) {
    ++evaluated;
    return 2 * x;
  });
  const Matrix<float> doubled = 2 * t.k;
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality, .chunk = 2};
    evaluated = 0;
    CHECK(attention(t.map, t.q, counted, t.v, options) == attention(t.map, t.q, doubled, t.v, options));
    CHECK(evaluated == t.k.size());
    evaluated = 0;
    CHECK(attention(t.kernel, t.q, counted, t.v, options) == attention(t.kernel, t.q, doubled, t.v, options));
    CHECK(evaluated == t.k.size());
  }
  // A block of an expression evaluates that block and no more; a product is what it is as a matrix.
  evaluated = 0;
  attention(t.kernel, t.q, counted.topRows(5), t.v.topRows(5));
  CHECK(evaluated == 5 * kD);
  const Matrix<float> weights = some<float>(kD, kD, 9);
  CHECK(attention(t.map, t.q * weights, t.k * weights, t.v) ==
        attention(t.map, Matrix<float>(t.q * weights), Matrix<float>(t.k * weights), t.v));
}

TEMPLATE_TEST_CASE("half and bfloat16 come in and go out, computed in float", "[input]", Eigen::half,
                   Eigen::bfloat16) {
  const Sample t;
  const Matrix<TestType> q = t.q.cast<TestType>(), k = t.k.cast<TestType>(), v = t.v.cast<TestType>();
  const Matrix<float> expected =
      attention(t.map, on_grid<TestType>(t.q), on_grid<TestType>(t.k), on_grid<TestType>(t.v), kOptions);
  CHECK(attention(t.map, q, k, v, kOptions) == expected);
  const Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> columns = k;
  CHECK(attention(t.map, q, columns, v, kOptions) == expected);
  const Matrix<TestType> wide = q.replicate(1, 2);
  CHECK(attention(t.map, wide.rightCols(kD), k, v, kOptions) == expected);

  Matrix<TestType> out(kNq, kDv);
  attention(t.map, q, k, v, out, kOptions);
  CHECK(out == expected.cast<TestType>());
  // Into double, whose numbers they are too.
  CHECK(attention(ExponentialKernel<double>(), q, k, v) ==
        attention(ExponentialKernel<double>(), q.template cast<double>(), k.template cast<double>(),
                  v.template cast<double>()));
}

TEST_CASE("float widens to double, argument by argument", "[input]") {
  const Sample t;
  const ExponentialKernel<double> kernel;
  const Matrix<double> q = t.q.cast<double>(), k = t.k.cast<double>(), v = t.v.cast<double>();
  const Matrix<double> expected = attention(kernel, q, k, v);
  CHECK(attention(kernel, t.q, t.k, t.v) == expected);
  CHECK(attention(kernel, t.q, k, t.v.cast<Eigen::half>().cast<double>()).rows() == kNq);
  CHECK(attention(kernel, q, t.k, v) == expected);
}

TEST_CASE("what is empty has no place, and none of its parts has: an offset to a null pointer is undefined",
          "[input]") {
  using Nothing = Eigen::Map<Matrix<float>, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
  Nothing nothing(nullptr, 5, 0, {3, 2});
  const Input<float> input(nothing);
  const Output<float> output(nothing);
  CHECK(input.slice(2, 1).extent().data == nullptr);
  CHECK(input.shifted(8).extent().data == nullptr);
  CHECK(input.span(2, 1).data == nullptr);
  CHECK(output.slice(2, 1).extent().data == nullptr);
  CHECK(output.shifted(8).extent().data == nullptr);
  const Heads<float> heads(nullptr, {2, 3, 5, 0}, {1, 2, 3, 4});
  CHECK(heads(1, 2).data() == nullptr);
  CHECK(heads.tokens(2, 1).data() == nullptr);
  CHECK(heads.heads(2, 1).data() == nullptr);
}

TEST_CASE("empty inputs give empty or zero outputs", "[input]") {
  const Sample t;
  const auto check = [&](const auto& similarity) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      const AttentionOptions options{.causality = causality};
      CHECK(attention(similarity, t.q.topRows(0), t.k, t.v, options).rows() == 0);
      CHECK(attention(similarity, t.q, t.k.topRows(0), t.v.topRows(0), options) ==
            Matrix<float>::Zero(kNq, kDv));
      CHECK(attention(similarity, t.q, t.k, t.v.leftCols(0), options).cols() == 0);
    }
  };
  check(t.kernel);
  check(t.map);
}
