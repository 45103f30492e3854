#pragma once

// A feature map chosen at run time.

#include <phiattn/feature_maps/feature_map_base.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// Any positive map (Tag LogFeatureMapTag) or any signed one (SignedFeatureMapTag) behind one type: for maps that a
/// configuration names, and to compile the operator once for all of them. Immutable; copies share the map.
/// Cost: that of the map, and an indirect call a chunk.
template <detail::ComputeScalar S, class Tag>
class AnyFeatureMap : public FeatureMapBase<AnyFeatureMap<S, Tag>, S, Tag> {
 public:
  // That Map is another type comes first: whether this one is a map is what is being asked.
  template <class Map>
  requires(!std::same_as<Map, AnyFeatureMap>) &&
      FeatureMap<Map>&& std::same_as<typename Map::Kind, Tag>&& std::same_as<
          typename Map::Scalar, S> AnyFeatureMap(Map map)  // implicit: it stands for its map
      : dimension_(map.dimension()),
  feature_dimension_(map.feature_dimension()) {
    calls_ = std::make_shared<const Calls>(calls(std::make_shared<const Map>(std::move(map))));
  }

  Index dimension() const { return dimension_; }
  Index feature_dimension() const { return feature_dimension_; }
  double default_scale(Index d) const { return calls_->default_scale(d); }

  /// Whether the map behind it is a UniformFeatureMap.
  bool is_uniform() const { return calls_->is_uniform; }
  /// Whether its similarity is positive for any two tokens.
  bool is_never_zero() const { return calls_->is_never_zero; }

  void features(Side side, const ConstMatrixRef<S>& x, Index first, FeatureBlock<S> block) const {
    calls_->features(side, x, first, block);
  }

 private:
  struct Calls {
    std::function<double(Index)> default_scale;
    std::function<void(Side, const ConstMatrixRef<S>&, Index, FeatureBlock<S>)> features;
    bool is_uniform;
    bool is_never_zero;
  };

  template <class Map>
  static Calls calls(std::shared_ptr<const Map> map) {
    return {[map](Index d) { return map->default_scale(d); },
            [map](Side side, const ConstMatrixRef<S>& x, Index first, FeatureBlock<S> block) {
              detail::fill_features(*map, side, x, first, block);
            },
            UniformFeatureMap<Map>, detail::is_never_zero(*map)};
  }

  Index dimension_;
  Index feature_dimension_;
  std::shared_ptr<const Calls> calls_;
};

/// The map behind the type that fits its kind and scalar.
template <FeatureMap Map>
AnyFeatureMap<typename Map::Scalar, typename Map::Kind> any_feature_map(Map map) {
  return {std::move(map)};
}

}  // namespace phiattn::inline PHIATTN_ABI
