// Maps and kernels are known by what they make of a few tokens: which of them merge.
#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/kernels/gaussian.hpp>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr Index kD = 4;

/// (1, x) with something else on one side: tokens that are `factor` times as long, and all features times e^log_factor.
template <class Tag>
class OneSided : public FeatureMapBase<OneSided<Tag>, double, Tag> {
 public:
  OneSided(Side side, double factor, double log_factor)
      : side_(side), factor_(factor), log_factor_(log_factor) {}
  Index dimension() const { return kD; }
  Index feature_dimension() const { return 1 + kD; }
  void features(Side side, const ConstMatrixRef<double>& x, Index, FeatureBlock<double> block) const {
    block.values.col(0).setOnes();
    block.values.rightCols(kD) = x * (side == side_ ? factor_ : 1);
    block.log_scale.setConstant(side == side_ ? log_factor_ : 0);
  }

 private:
  Side side_;
  double factor_, log_factor_;
};

template <class M>
void merge(M memory, M other) {
  const Matrix<double> k = Matrix<double>::Ones(3, kD), v = Matrix<double>::Ones(3, 1);
  memory.append(k, v);
  other.append(k, v);
  memory.merge(other);
}

}  // namespace

TEMPLATE_TEST_CASE(
    "maps that differ on one side or in a factor do not merge, those that rounding tells apart do",
    "[memory]", LogFeatureMapTag, SignedFeatureMapTag) {
  const auto merge_maps = [](Side side, double factor, double log_factor) {
    merge(LinearState(OneSided<TestType>(side, 1, 0), 1),
          LinearState(OneSided<TestType>(side, factor, log_factor), 1));
  };
  for (const Side side : {Side::keys, Side::queries}) {
    CHECK_THROWS_WITH(merge_maps(side, 1.01, 0), ContainsSubstring("feature map"));
    CHECK_THROWS_WITH(merge_maps(side, 1, 0.01), ContainsSubstring("feature map"));
    CHECK_NOTHROW(merge_maps(side, 1 + 1e-7, 1e-7));
  }
}

TEST_CASE("kernels that differ do not merge, those that rounding tells apart do", "[memory]") {
  const auto merge_kernels = [](double sigma) {
    merge(KeyValueCache(GaussianKernel<double>(1), 1), KeyValueCache(GaussianKernel<double>(sigma), 1));
  };
  CHECK_THROWS_WITH(merge_kernels(1.01), ContainsSubstring("kernel"));
  CHECK_NOTHROW(merge_kernels(1 + 1e-7));
}
