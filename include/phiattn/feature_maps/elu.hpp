#pragma once

// The feature map of the first linear transformer.

#include <phiattn/core/check.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

namespace phiattn::inline PHIATTN_ABI {

/// phi_i(x) = elu(x_i) + 1: x_i + 1 where x_i > 0, exp(x_i) elsewhere   (Katharopoulos et al. 2020, eq. 7).
///
/// A similarity of its own, not an approximation of exp(q . k); its default scale is 1.
/// @throws std::invalid_argument  if d < 1
/// Cost: n d logarithms and n d exponentials for n tokens.
template <detail::ComputeScalar S>
class EluFeatures : public LogFeatureMapBase<EluFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;
  static constexpr bool kNeverZero = true;

  explicit EluFeatures(Index d) : dimension_(d) {
    detail::check_at_least("dimension d of EluFeatures", d, 1);
  }

  Index dimension() const { return dimension_; }
  Index feature_dimension() const { return dimension_; }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    block.log_scale.setZero();
    // One of the two terms is 0, and what 1 + x loses of a small x is a rounding error of the feature. x - x carries a
    // NaN, which min and max may drop (and makes one of an infinity).
    block.values = (x.array().min)(S(0)) + (S(1) + (x.array().max)(S(0))).log() + (x.array() - x.array());
  }

 private:
  Index dimension_;
};

}  // namespace phiattn::inline PHIATTN_ABI
