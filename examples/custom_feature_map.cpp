// A feature map of one's own: phi_i(x) = softplus(x_i) = ln(1 + e^x_i). It gets all that the others have:
// causal and streaming attention, merging, and no epsilon.

#include <cstdio>
#include <phiattn/phiattn.hpp>

namespace pa = phiattn;

/// A positive map hands over ln(phi), so that nothing overflows and no product of features underflows.
class SoftplusFeatures : public pa::LogFeatureMapBase<SoftplusFeatures, float> {
 public:
  explicit SoftplusFeatures(pa::Index d) : d_(d) {}
  pa::Index dimension() const { return d_; }
  pa::Index feature_dimension() const { return d_; }

  static constexpr bool kUniform = true;  // the same for queries and keys, wherever they stand

  void features(pa::Side, const pa::ConstMatrixRef<float>& x, pa::Index,
                pa::FeatureBlock<float> block) const {
    block.log_scale.setZero();  // ln(phi) = values + log_scale, a log_scale a token
    const auto softplus = x.array().max(0.0f) + (-x.array().abs()).exp().log1p();
    block.values = (x.array() < -15.0f).select(x.array(), softplus.log());  // there ln(softplus(x)) = x
  }

 private:
  pa::Index d_;
};
static_assert(pa::LogFeatureMap<SoftplusFeatures>);

int main() {
  const pa::Matrix<float> x = 4 * pa::Matrix<float>::Random(512, 16);
  const pa::AttentionOptions causal{.causality = pa::Causality::causal};
  const auto out = pa::attention(SoftplusFeatures(16), x, x, x, causal);
  // The same by its definition: out_i = sum_j phi(x_i).phi(x_j) x_j / sum_j phi(x_i).phi(x_j), j <= i.
  const pa::Matrix<float> phi = SoftplusFeatures(16).query_features(x);
  const pa::Matrix<float> sim = (phi * phi.transpose()).triangularView<Eigen::Lower>();
  const pa::Matrix<float> defined = sim.rowwise().sum().cwiseInverse().asDiagonal() * (sim * x);
  std::printf("largest difference to the definition: %.1e\n", pa::maximal_error(out, defined));
}
