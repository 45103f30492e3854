#pragma once

// A feature map of other queries and keys.

#include <phiattn/core/check.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// A feature map that sees reparametrised queries and keys, with the terms that make up for it:
///
///     phi(q) = exp(scale b . q) phi_map(q'),   varphi(k) = exp(scale a . (k - b)) varphi_map(k')
///
/// so that where `map` approximates exp(q . k), this one does too, with the errors that `map` makes of q' and
/// k'. Those factors are right for any reparametrisation and at any scale of attention; only the shifts are
/// meant for one scale, the one given here, which becomes default_scale(). For maps of exp(q . k) alone: what
/// approximates another function of q . k goes on doing so without shifts only.
/// @param scale  that of the attention to come; default: the map's own default
/// @throws std::invalid_argument  if the two differ in dimension, or if the scale is not positive and finite
/// Cost: that of `map`, and O(n d) for n tokens, or 2 n d^2 flops where the linear part is not diagonal.
template <FeatureMap Map>
class Reparametrised : public FeatureMapBase<Reparametrised<Map>, typename Map::Scalar, typename Map::Kind> {
 public:
  using Scalar = typename Map::Scalar;
  using S = Scalar;

  Reparametrised(Map map, const Reparametrisation& reparametrisation,
                 std::optional<double> scale = std::nullopt)
      : map_(std::move(map)),
        scale_(detail::checked_positive("scale", scale.value_or(map_.default_scale(map_.dimension())))) {
    detail::check_equal("dimension of the reparametrisation", reparametrisation.dimension(),
                        "dimension of the feature map", map_.dimension());
    sides_ = std::make_shared<const Sides>(
        Sides{{reparametrisation.query_side(), scale_}, {reparametrisation.key_side(), scale_}});
  }

  const Map& map() const { return map_; }
  Index dimension() const { return map_.dimension(); }
  Index feature_dimension() const { return map_.feature_dimension(); }
  double default_scale(Index) const { return scale_; }

  /// Whether that of the map is positive for any two tokens: the factors are.
  bool is_never_zero() const { return detail::is_never_zero(map_); }

  /// Some tokens at a time, so that x' stays in the cache.
  void features(Side given, const ConstMatrixRef<S>& x, Index first, FeatureBlock<S> block) const {
    const detail::ScaledSide<S>& side = given == Side::queries ? sides_->query : sides_->key;
    const Index together = std::max<Index>(1, detail::kCacheScratch<S> / (2 * x.cols()));
    for (Index begin = 0; begin < x.rows(); begin += together) {
      const Index n = (std::min)(together, x.rows() - begin);
      detail::with_scratch<S>(2 * n, x.cols(), [&](Eigen::Map<Matrix<S>> scratch) {
        auto moved = side.is_diagonal() ? scratch.topRows(n) : scratch.bottomRows(n);
        side.transform(x.middleRows(begin, n), moved, scratch.topRows(n));
        detail::fill_features<Map>(map_, given, scratch.topRows(n), first + begin, block.middle(begin, n));
      });
    }
    side.add_log_factors(x, block.log_scale);
  }

 private:
  struct Sides {
    detail::ScaledSide<S> query;
    detail::ScaledSide<S> key;
  };

  Map map_;
  double scale_;
  std::shared_ptr<const Sides> sides_;
};

}  // namespace phiattn::inline PHIATTN_ABI
