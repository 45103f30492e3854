#pragma once

// Sparse products of positive parts.

#include <phiattn/core/check.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/feature_maps/elementwise.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// DPFP-nu, the deterministic parameter-free projection (Schlag, Irie & Schmidhuber 2021):
///
///     r(x) = (max(0, x), max(0, -x)),   phi_{(j-1) 2d + i}(x) = r_i(x) r_{i-j mod 2d}(x),   j = 1 ... nu, i < 2d
///
/// A similarity of its own with default scale 1. At most d of the 2d entries of r are positive: two tokens have a
/// feature in common only if they agree in the signs of a pair of coordinates. So a query may find no key, which
/// gives 0, and with d = 1 every feature is 0.
/// Works in models trained with it. Fails as a stand-in for softmax, being homogeneous of degree 2.
/// @param nu  1 <= nu < 2d
/// @throws std::invalid_argument  if d < 1, or nu is out of range
/// Cost: 2 n d logarithms and n m additions for n tokens and m = 2 d nu features.
template <detail::ComputeScalar S>
class DpfpFeatures : public LogFeatureMapBase<DpfpFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;

  DpfpFeatures(Index d, Index nu) : dimension_(d), nu_(nu) {
    detail::check_at_least("dimension d of DpfpFeatures", d, 1);
    detail::check_at_least("nu of DpfpFeatures", nu, 1);
    if (nu >= 2 * d) {
      detail::fail_argument("nu of DpfpFeatures: got " + std::to_string(nu) +
                            ", expected less than 2 d = " + std::to_string(2 * d));
    }
  }

  Index dimension() const { return dimension_; }
  Index nu() const { return nu_; }
  Index feature_dimension() const { return 2 * dimension_ * nu_; }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    block.log_scale.setZero();
    const Index width = 2 * dimension_;
    detail::with_scratch<S>(1, width, [&](Eigen::Map<Matrix<S>> scratch) {
      auto log_r = scratch.row(0);
      for (Index t = 0; t < x.rows(); ++t) {
        log_r.head(dimension_) = x.row(t).unaryExpr(LogRelu{});
        log_r.tail(dimension_) = (-x.row(t)).unaryExpr(LogRelu{});
        for (Index j = 1; j <= nu_; ++j) {
          auto part = block.values.row(t).segment((j - 1) * width, width);
          part.head(j) = log_r.head(j) + log_r.tail(j);
          part.tail(width - j) = log_r.tail(width - j) + log_r.head(width - j);
        }
      }
    });
  }

 private:
  Index dimension_;
  Index nu_;
};

}  // namespace phiattn::inline PHIATTN_ABI
