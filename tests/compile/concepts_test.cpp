// Every type models its own concept and no other; a type that misses a part models none.
#include <phiattn/phiattn.hpp>

#include <memory>
#include <type_traits>

#include "compile/second_unit.hpp"
#include "support/catch.hpp"

using namespace phiattn;

namespace {

enum Is { kLogKernel = 1, kSignedKernel = 2, kLogMap = 4, kSignedMap = 8 };

/// The concepts that F models, as a set.
template <class F>
inline constexpr int kModels = (LogKernel<F> ? kLogKernel : 0) | (SignedKernel<F> ? kSignedKernel : 0) |
                               (LogFeatureMap<F> ? kLogMap : 0) | (SignedFeatureMap<F> ? kSignedMap : 0);

template <class S>
constexpr bool each_type_models_its_own_concept() {
  static_assert(kModels<ExponentialKernel<S>> == kLogKernel);
  static_assert(kModels<PolynomialKernel<S>> == kSignedKernel);
  static_assert(kModels<PositiveRandomFeatures<S>> == kLogMap);
  static_assert(kModels<EluFeatures<S>> == kLogMap);
  static_assert(kModels<TensorPowerFeatures<S>> == kSignedMap);
  static_assert(kModels<TaylorFeatures<S>> == kSignedMap);
  static_assert(kModels<ExponentialLimitFeatures<S>> == kSignedMap);
  static_assert(Kernel<ExponentialKernel<S>> && !FeatureMap<ExponentialKernel<S>>);
  static_assert(FeatureMap<EluFeatures<S>> && !Kernel<EluFeatures<S>>);

  static_assert(Memory<KeyValueCache<ExponentialKernel<S>>> && Memory<KeyValueCache<PolynomialKernel<S>>>);
  static_assert(Memory<LinearState<PositiveRandomFeatures<S>>> && Memory<LinearState<TaylorFeatures<S>>>);
  static_assert(!Memory<ExponentialKernel<S>> && !Similarity<KeyValueCache<ExponentialKernel<S>>>);
  return true;
}
static_assert(each_type_models_its_own_concept<float>() && each_type_models_its_own_concept<double>());

// A minimal model of each concept, and for each what happens without one of its parts.

template <class S>
using ConstRows = const ConstMatrixRef<S>&;

struct MinimalKernel {
  using Scalar = float;
  using Kind = LogKernelTag;
  static double default_scale(Index) { return 1; }
  void similarity(ConstRows<float>, ConstRows<float>, MatrixRef<float> tile) const { tile.setZero(); }
};
static_assert(kModels<MinimalKernel> == kLogKernel);

struct MinimalSignedKernel {
  using Scalar = double;
  using Kind = SignedKernelTag;
  static double default_scale(Index) { return 1; }
  void similarity(ConstRows<double>, ConstRows<double>, MatrixRef<double> tile,
                  VectorRef<double> log_scale) const {
    tile.setOnes();
    log_scale.setZero();
  }
};
static_assert(kModels<MinimalSignedKernel> == kSignedKernel);

struct MinimalMap : LogFeatureMapBase<MinimalMap, float> {
  Index dimension() const { return 2; }
  Index feature_dimension() const { return 1; }
  void features(Side, ConstRows<float>, Index, FeatureBlock<float> block) const {
    block.values.setZero();
    block.log_scale.setZero();
  }
};
static_assert(kModels<MinimalMap> == kLogMap);
static_assert(!UniformFeatureMap<MinimalMap>);

/// One that looks neither at the side nor at positions.
struct MinimalUniformMap : MinimalMap {
  static constexpr bool kUniform = true;
};
static_assert(kModels<MinimalUniformMap> == kLogMap);
static_assert(UniformFeatureMap<MinimalUniformMap>);

struct MinimalSignedMap : SignedFeatureMapBase<MinimalSignedMap, double> {
  Index dimension() const { return 2; }
  Index feature_dimension() const { return 1; }
  void features(Side side, ConstRows<double>, Index, FeatureBlock<double> block) const {
    block.values.setConstant(side == Side::queries ? -1 : -2);
    block.log_scale.setZero();
  }
};
static_assert(kModels<MinimalSignedMap> == kSignedMap);

/// Without the base.
struct MinimalMapAlone {
  using Scalar = float;
  using Kind = LogFeatureMapTag;
  static double default_scale(Index) { return 1; }
  Index dimension() const { return 2; }
  Index feature_dimension() const { return 1; }
  void features(Side, ConstRows<float>, Index, FeatureBlock<float> block) const {
    block.values.setZero();
    block.log_scale.setZero();
  }
};
static_assert(kModels<MinimalMapAlone> == kLogMap);

struct KernelOfWrongKind : MinimalKernel {
  using Kind = SignedKernelTag;
};
struct KernelOfNoKind : MinimalKernel {
  using Kind = void;
};
struct KernelOfIntegers : MinimalKernel {
  using Scalar = int;
};
struct KernelOfLongDouble : MinimalKernel {
  using Scalar = long double;
};
struct KernelOfHalf : MinimalKernel {
  using Scalar = Eigen::half;
};
struct KernelOfOtherScalar : MinimalKernel {
  using Scalar = double;  // its tiles are float
};
struct KernelNotCopyable : MinimalKernel {
  std::unique_ptr<int> only_one;
};
struct KernelOfWrongSignature {
  using Scalar = float;
  using Kind = LogKernelTag;
  static double default_scale(Index) { return 1; }
  float similarity(ConstRows<float>, ConstRows<float>) const { return 0; }
};
struct KernelNotConst {
  using Scalar = float;
  using Kind = LogKernelTag;
  static double default_scale(Index) { return 1; }
  void similarity(ConstRows<float>, ConstRows<float>, MatrixRef<float>) {}
};
struct KernelOfNoScale {
  using Scalar = float;
  using Kind = LogKernelTag;
  void similarity(ConstRows<float>, ConstRows<float>, MatrixRef<float>) const {}
};
static_assert(kModels<KernelOfWrongKind> == 0);
static_assert(kModels<KernelOfNoKind> == 0);
static_assert(kModels<KernelOfIntegers> == 0);
static_assert(kModels<KernelOfLongDouble> == 0);
static_assert(kModels<KernelOfHalf> == 0);
static_assert(kModels<KernelOfOtherScalar> == 0);
static_assert(kModels<KernelNotCopyable> == 0);
static_assert(kModels<KernelOfWrongSignature> == 0);
static_assert(kModels<KernelNotConst> == 0);
static_assert(kModels<KernelOfNoScale> == 0);

struct MapWithoutFeatureDimension : LogFeatureMapBase<MapWithoutFeatureDimension, float> {
  Index dimension() const { return 2; }
  void features(Side, ConstRows<float>, Index, FeatureBlock<float>) const {}
};
struct MapWithoutDimension : LogFeatureMapBase<MapWithoutDimension, float> {
  Index feature_dimension() const { return 2; }
  void features(Side, ConstRows<float>, Index, FeatureBlock<float>) const {}
};
struct MapWithoutFeatures : LogFeatureMapBase<MapWithoutFeatures, float> {
  Index dimension() const { return 2; }
  Index feature_dimension() const { return 2; }
};
struct MapOfNoKind : MinimalMap {
  using Kind = void;
};
struct MapOfWrongScalar : MinimalMap {
  using Scalar = int;
};
struct MapNotCopyable : MinimalMap {
  std::unique_ptr<int> only_one;
};
struct MapWithoutPosition : LogFeatureMapBase<MapWithoutPosition, float> {
  Index dimension() const { return 2; }
  Index feature_dimension() const { return 2; }
  void features(Side, ConstRows<float>, FeatureBlock<float>) const {}
};
struct MapNotConst : LogFeatureMapBase<MapNotConst, float> {
  Index dimension() const { return 2; }
  Index feature_dimension() const { return 2; }
  void features(Side, ConstRows<float>, Index, FeatureBlock<float>) {}
};
static_assert(kModels<MapWithoutFeatureDimension> == 0);
static_assert(kModels<MapWithoutDimension> == 0);
static_assert(kModels<MapWithoutFeatures> == 0);
static_assert(kModels<MapOfNoKind> == 0);
static_assert(kModels<MapOfWrongScalar> == 0);
static_assert(kModels<MapNotCopyable> == 0);
static_assert(kModels<MapWithoutPosition> == 0);
static_assert(kModels<MapNotConst> == 0);

static_assert(!Similarity<int> && !Memory<int> && !Similarity<Matrix<float>>);

}  // namespace

TEST_CASE("minimal models of each concept are enough for attention", "[compile]") {
  const Matrix<float> x = Matrix<float>::Random(5, 2), v = Matrix<float>::Random(5, 3);
  // Each of them weighs all keys alike.
  const Matrix<float> mean = v.colwise().mean().replicate(5, 1);
  CHECK(attention(MinimalKernel(), x, x, v).isApprox(mean));
  CHECK(attention(MinimalSignedKernel(), x, x, v).isApprox(mean.cast<double>(), 1e-6));
  CHECK(attention(MinimalMap(), x, x, v).isApprox(mean));
  CHECK(attention(MinimalUniformMap(), x, x, v).isApprox(mean));
  CHECK(attention(MinimalSignedMap(), x, x, v).isApprox(mean.cast<double>(), 1e-6));
  CHECK(attention(MinimalMapAlone(), x, x, v).isApprox(mean));
}

TEST_CASE("two translation units that include all of the library link, and agree", "[compile]") {
  const Matrix<float> x = Matrix<float>::Random(6, 4);
  CHECK(softmax_in_second_unit(x) == attention(ExponentialKernel<float>(), x, x, x));
  CHECK(favor_in_second_unit(x) ==
        attention(PositiveRandomFeatures<float>(sample_projection<float>(8, 4)), x, x, x));
}
