// How to add a feature map: the README's, held to its definition.
#include <phiattn/analysis/error.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

#include "support/catch.hpp"

namespace pa = phiattn;

namespace {

class SquareFeatures : public pa::SignedFeatureMapBase<SquareFeatures, float> {  // phi_i(x) = x_i^2
 public:
  static constexpr bool kUniform = true;  // queries and keys alike, wherever they stand
  explicit SquareFeatures(pa::Index d) : d_(d) {}
  pa::Index dimension() const { return d_; }
  pa::Index feature_dimension() const { return d_; }
  void features(pa::Side, const pa::ConstMatrixRef<float>& x, pa::Index,
                pa::FeatureBlock<float> block) const {
    block.values = x.array().square();
    block.log_scale.setZero();  // phi = values exp(log_scale)
  }

 private:
  pa::Index d_;
};
static_assert(pa::SignedFeatureMap<SquareFeatures> && pa::UniformFeatureMap<SquareFeatures>);

}  // namespace

TEST_CASE("a feature map of one's own takes a class with one verb") {
  const pa::Matrix<float> x = pa::Matrix<float>::Random(50, 6);
  const pa::Matrix<float> sim = x.cwiseAbs2() * x.cwiseAbs2().transpose();
  const pa::Matrix<float> causal = sim.triangularView<Eigen::Lower>();
  const pa::Matrix<float> due = causal.rowwise().sum().cwiseInverse().asDiagonal() * (causal * x);
  const auto out = pa::attention(SquareFeatures(6), x, x, x, {.causality = pa::Causality::causal});
  CHECK(pa::maximal_error(out, due) < 1e-5);
}
