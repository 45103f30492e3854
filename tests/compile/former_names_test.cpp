// What was written to the names of version 0.1 still works: maps and kernels of one's own, and calls of the library's.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include <cmath>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

using Tokens = const ConstMatrixRef<double>&;
using Values = MatrixRef<double>;
using Scales = VectorRef<double>;

/// x_i + 2 + step i position / 10, a feature or its logarithm.
void fill(Tokens x, Index first, double step, Values values, Scales log_scale) {
  for (Index t = 0; t < x.rows(); ++t) {
    for (Index i = 0; i < x.cols(); ++i) {
      values(t, i) = x(t, i) + 2 + step * static_cast<double>(i * (first + t)) / 10;
    }
    log_scale(t) = x(t, 0);
  }
}

enum class Form { alike, positioned, of_sides };

/// Each form as it is written today.
template <class Tag, Form kForm>
struct Map : FeatureMapBase<Map<Tag, kForm>, double, Tag> {
  static constexpr bool kUniform = kForm == Form::alike;
  Index dimension() const { return 3; }
  Index feature_dimension() const { return 3; }
  void features(Side side, Tokens x, Index first, FeatureBlock<double> block) const {
    const double step = kForm == Form::alike ? 0 : kForm == Form::of_sides && side == Side::keys ? 2 : 1;
    fill(x, first, step, block.values, block.log_scale);
  }
};

// Each form as it was, on any base.

template <class Base>
struct OfThree : Base {
  Index dimension() const { return 3; }
  Index feature_dimension() const { return 3; }
};

#define PHIATTN_FORMER_MAPS(Kind, name)                                                      \
  template <class Base>                                                                      \
  struct Kind##Alike : OfThree<Base> {                                                       \
    void name##_features(Tokens x, Values values, Scales log_scale) const {                  \
      fill(x, 0, 0, values, log_scale);                                                      \
    }                                                                                        \
  };                                                                                         \
  template <class Base>                                                                      \
  struct Kind##Positioned : OfThree<Base> {                                                  \
    void name##_features(Tokens x, Index first, Values values, Scales log_scale) const {     \
      fill(x, first, 1, values, log_scale);                                                  \
    }                                                                                        \
  };                                                                                         \
  template <class Base>                                                                      \
  struct Kind##QueriesOnly : OfThree<Base> {                                                 \
    void name##_query_features(Tokens x, Index first, Values values, Scales scales) const {  \
      fill(x, first, 1, values, scales);                                                     \
    }                                                                                        \
  };                                                                                         \
  template <class Base>                                                                      \
  struct Kind##OfSides : Kind##QueriesOnly<Base> {                                           \
    void name##_key_features(Tokens x, Index first, Values values, Scales log_scale) const { \
      fill(x, first, 2, values, log_scale);                                                  \
    }                                                                                        \
  };
PHIATTN_FORMER_MAPS(Log, log)
PHIATTN_FORMER_MAPS(Signed, signed)
#undef PHIATTN_FORMER_MAPS

/// A former map from the base, and one that says itself what that gives.
template <class Tag, template <class> class With>
struct Based : With<FeatureMapBase<Based<Tag, With>, double, Tag>> {};

template <class Tag>
struct NoBase {
  using Scalar = double;
  using Kind = Tag;
  static double default_scale(Index) { return 1; }
};
template <class Tag, template <class> class With>
using Alone = With<NoBase<Tag>>;

template <class Base>
struct Bare : OfThree<Base> {};

template <class F>
inline constexpr bool kIsMap = LogFeatureMap<F> || SignedFeatureMap<F>;

static_assert(!kIsMap<Based<LogFeatureMapTag, Bare>> && !kIsMap<Based<SignedFeatureMapTag, Bare>>);
static_assert(!kIsMap<Based<LogFeatureMapTag, LogQueriesOnly>>);
static_assert(!kIsMap<Based<SignedFeatureMapTag, SignedQueriesOnly>>);
static_assert(!kIsMap<Alone<LogFeatureMapTag, LogQueriesOnly>>);
static_assert(!kIsMap<Based<LogFeatureMapTag, SignedAlike>> && !kIsMap<Alone<LogFeatureMapTag, SignedAlike>>);
static_assert(!kIsMap<Based<SignedFeatureMapTag, LogAlike>> &&
              !kIsMap<Alone<SignedFeatureMapTag, LogOfSides>>);

struct FormerLogKernel {
  using Scalar = double;
  using Kind = LogKernelTag;
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }
  void log_similarity(Tokens q, Tokens k, Values tile) const { tile = q * k.transpose(); }
};
static_assert(LogKernel<FormerLogKernel> && !SignedKernel<FormerLogKernel>);

/// (1 + q . k)^2 / 4 times 4
struct FormerSignedKernel {
  using Scalar = double;
  using Kind = SignedKernelTag;
  static double default_scale(Index) { return 1; }
  void signed_similarity(Tokens q, Tokens k, Values tile, Scales log_scale) const {
    tile = (1 + (q * k.transpose()).array()).square() / 4;
    log_scale.setConstant(std::log(4.0));
  }
};
static_assert(SignedKernel<FormerSignedKernel> && !LogKernel<FormerSignedKernel>);

struct SquareKernel {
  using Scalar = double;
  using Kind = SignedKernelTag;
  static double default_scale(Index) { return 1; }
  void similarity(Tokens q, Tokens k, Values tile, Scales log_scale) const {
    tile = (1 + (q * k.transpose()).array()).square();
    log_scale.setZero();
  }
};

Matrix<double> some(Index rows, Index cols, double seed) {
  return Matrix<double>::NullaryExpr(
      rows, cols, [=](Index i, Index j) { return std::sin(seed + 2.3 * static_cast<double>(i * cols + j)); });
}

const Matrix<double> kQ = some(9, 3, 1), kK = some(9, 3, 2), kV = some(9, 2, 3);

/// The same attention both ways.
void check_same(const auto& former, const auto& ported) {
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality};
    CHECK(attention(former, kQ, kK, kV, options).isApprox(attention(ported, kQ, kK, kV, options), 1e-14));
  }
}

template <Form kForm, class Tag, template <class> class With>
void check_map() {
  const Map<Tag, kForm> ported;
  const Based<Tag, With> based;
  const auto any = any_feature_map(ported);
  check_same(any_feature_map(based), any);
  check_same(any_feature_map(Alone<Tag, With>()), any);
  // What the base gives is there for former maps too.
  CHECK(based.query_features(kQ, 3) == ported.query_features(kQ, 3));
  CHECK(based.key_features(kK, 3) == ported.key_features(kK, 3));
}

struct Block {
  Matrix<double> values;
  Vector<double> log_scale;
  explicit Block(Index m) : values(kQ.rows(), m), log_scale(kQ.rows()) {}
  bool operator==(const Block& other) const { return values == other.values && log_scale == other.log_scale; }
};

Block features(const auto& map, Side side, Index first) {
  Block block(map.feature_dimension());
  map.features(side, kQ, first, {block.values, block.log_scale});
  return block;
}

}  // namespace

TEST_CASE("maps that were written to the former names give the same attention", "[compile]") {
  check_map<Form::alike, LogFeatureMapTag, LogAlike>();
  check_map<Form::positioned, LogFeatureMapTag, LogPositioned>();
  check_map<Form::of_sides, LogFeatureMapTag, LogOfSides>();
  check_map<Form::alike, SignedFeatureMapTag, SignedAlike>();
  check_map<Form::positioned, SignedFeatureMapTag, SignedPositioned>();
  check_map<Form::of_sides, SignedFeatureMapTag, SignedOfSides>();
  // Not only behind AnyFeatureMap, which compiles attention but twice here.
  check_same(Based<LogFeatureMapTag, LogAlike>(), Map<LogFeatureMapTag, Form::alike>());
  check_same(Alone<SignedFeatureMapTag, SignedOfSides>(), Map<SignedFeatureMapTag, Form::of_sides>());
}

TEST_CASE("kernels that were written to the former names give the same attention", "[compile]") {
  check_same(FormerLogKernel(), ExponentialKernel<double>());
  check_same(FormerSignedKernel(), SquareKernel());
}

TEST_CASE("the library's maps and kernels still answer to the former names", "[compile]") {
  const Map<LogFeatureMapTag, Form::of_sides> of_sides;
  Block block(3);
  of_sides.log_query_features(kQ, 5, block.values, block.log_scale);
  CHECK(block == features(of_sides, Side::queries, 5));
  of_sides.log_key_features(kQ, 5, block.values, block.log_scale);
  CHECK(block == features(of_sides, Side::keys, 5));

  const EluFeatures<double> elu(3);
  elu.log_features(kQ, block.values, block.log_scale);
  CHECK(block == features(elu, Side::keys, 0));
  // Those of a former map that wrote neither side.
  const Based<LogFeatureMapTag, LogPositioned> former;
  former.log_key_features(kQ, 5, block.values, block.log_scale);
  CHECK(block == features(Map<LogFeatureMapTag, Form::positioned>(), Side::keys, 5));

  const TaylorFeatures<double> taylor(3, 2);
  Block power(taylor.feature_dimension());
  taylor.signed_query_features(kQ, 0, power.values, power.log_scale);
  CHECK(power == features(taylor, Side::queries, 0));
  taylor.signed_features(kQ, power.values, power.log_scale);
  CHECK(power == features(taylor, Side::queries, 0));

  Matrix<double> tile(9, 9), other(9, 9);
  Vector<double> log_scale(9), other_scale(9);
  ExponentialKernel<double>().log_similarity(kQ, kK, tile);
  ExponentialKernel<double>().similarity(kQ, kK, other);
  CHECK(tile == other);
  const auto square = PolynomialKernel<double>::exponential_limit(2);
  square.signed_similarity(kQ, kK, tile, log_scale);
  square.similarity(kQ, kK, other, other_scale);
  CHECK((tile == other && log_scale == other_scale));
}
