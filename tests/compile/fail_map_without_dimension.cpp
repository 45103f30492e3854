// expect: the type says that it is a LogFeatureMap, but does not model that concept
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

using namespace phiattn;

/// It says what it is, and lacks dimension().
struct MapWithoutDimension : LogFeatureMapBase<MapWithoutDimension, float> {
  Index feature_dimension() const { return 3; }
  void features(Side, const ConstMatrixRef<float>& x, Index, FeatureBlock<float> block) const {
    block.values = x;
    block.log_scale.setZero();
  }
};

int main() {
  const Matrix<float> x = Matrix<float>::Random(4, 3);
  attention(MapWithoutDimension(), x, x, x);
}
