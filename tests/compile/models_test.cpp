// Every kernel and every map models its concept: here and not beside them, where whoever includes them would pay for it.
// Those that concepts_test.cpp looks at are not repeated.
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/dijiang.hpp>
#include <phiattn/feature_maps/dpfp.hpp>
#include <phiattn/feature_maps/elementwise.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/fourier_pairs.hpp>
#include <phiattn/feature_maps/hedgehog.hpp>
#include <phiattn/feature_maps/nystrom.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/random_fourier.hpp>
#include <phiattn/feature_maps/random_maclaurin.hpp>
#include <phiattn/feature_maps/reparametrised.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/feature_maps/tensor_sketch.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>
#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/kernels/pairwise.hpp>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

template <class S>
using OfPairs = S (*)(const RowVector<S>&, const RowVector<S>&);

template <class S>
constexpr bool each_models_its_concept() {
  static_assert(LogKernel<CosineKernel<S>>);
  static_assert(LogKernel<GaussianKernel<S>>);
  static_assert(LogKernel<PairwiseKernel<S, LogKernelTag, OfPairs<S>>>);
  static_assert(SignedKernel<PairwiseKernel<S, SignedKernelTag, OfPairs<S>>>);

  static_assert(LogFeatureMap<DiJiangFeatures<S>>);
  static_assert(LogFeatureMap<DpfpFeatures<S>>);
  static_assert(LogFeatureMap<ElementwiseFeatures<S, LogFeatureMapTag, LogRelu>>);
  static_assert(LogFeatureMap<HedgehogFeatures<S>>);
  static_assert(LogFeatureMap<Reparametrised<PositiveRandomFeatures<S>>>);
  static_assert(LogFeatureMap<AnyFeatureMap<S, LogFeatureMapTag>>);

  static_assert(SignedFeatureMap<CosformerFeatures<S>>);
  static_assert(SignedFeatureMap<ElementwiseFeatures<S, SignedFeatureMapTag, LogRelu>>);
  static_assert(SignedFeatureMap<FourierPairFeatures<S>>);
  static_assert(SignedFeatureMap<ExponentialPairFeatures<S>>);
  static_assert(SignedFeatureMap<NystromFeatures<ExponentialKernel<S>>>);
  static_assert(SignedFeatureMap<RandomFourierFeatures<S>>);
  static_assert(SignedFeatureMap<RandomMaclaurinFeatures<S>>);
  static_assert(SignedFeatureMap<TensorSketchFeatures<S>>);
  static_assert(SignedFeatureMap<TrigonometricFeatures<S>>);
  static_assert(SignedFeatureMap<AnyFeatureMap<S, SignedFeatureMapTag>>);

  static_assert(UniformFeatureMap<PositiveRandomFeatures<S>> && UniformFeatureMap<EluFeatures<S>>);
  static_assert(UniformFeatureMap<TaylorFeatures<S>> && UniformFeatureMap<TensorSketchFeatures<S>>);
  static_assert(!UniformFeatureMap<CosformerFeatures<S>>);
  static_assert(!UniformFeatureMap<FourierPairFeatures<S>>);
  static_assert(!UniformFeatureMap<Reparametrised<EluFeatures<S>>>);
  return true;
}
static_assert(each_models_its_concept<float>() && each_models_its_concept<double>());

}  // namespace

TEST_CASE("a map chosen at run time knows whether it is uniform", "[compile]") {
  CHECK(any_feature_map(EluFeatures<float>(3)).is_uniform());
  CHECK_FALSE(any_feature_map(CosformerFeatures<float>(3, 4)).is_uniform());
}
