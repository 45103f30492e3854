#pragma once

// A feature map chosen at run time. Next: attention/options.hpp.

#include <phiattn/feature_maps/feature_map_base.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace phiattn {

/// Any positive map (Tag LogFeatureMapTag) or any signed one (SignedFeatureMapTag) behind one type: for maps that a
/// configuration names, and to compile the operator once for all of them. Immutable; copies share the map.
/// Cost: that of the map, and an indirect call a chunk.
template <detail::ComputeScalar S, class Tag>
class AnyFeatureMap : public std::conditional_t<std::same_as<Tag, LogFeatureMapTag>,
                                                LogFeatureMapBase<AnyFeatureMap<S, Tag>, S>,
                                                SignedFeatureMapBase<AnyFeatureMap<S, Tag>, S>> {
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

  void log_query_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                          VectorRef<S> log_scale) const requires std::same_as<Tag, LogFeatureMapTag> {
    calls_->query(x, first, features, log_scale);
  }
  void log_key_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                        VectorRef<S> log_scale) const requires std::same_as<Tag, LogFeatureMapTag> {
    calls_->key(x, first, features, log_scale);
  }
  void signed_query_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                             VectorRef<S> log_scale) const requires std::same_as<Tag, SignedFeatureMapTag> {
    calls_->query(x, first, features, log_scale);
  }
  void signed_key_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                           VectorRef<S> log_scale) const requires std::same_as<Tag, SignedFeatureMapTag> {
    calls_->key(x, first, features, log_scale);
  }

 private:
  using Fill = std::function<void(const ConstMatrixRef<S>&, Index, MatrixRef<S>, VectorRef<S>)>;
  struct Calls {
    std::function<double(Index)> default_scale;
    Fill query;
    Fill key;
  };

  template <class Map>
  static Calls calls(std::shared_ptr<const Map> map) {
    const auto scale = [map](Index d) { return map->default_scale(d); };
    if constexpr (LogFeatureMap<Map>) {
      return {scale, [map](auto&&... args) { map->log_query_features(args...); },
              [map](auto&&... args) { map->log_key_features(args...); }};
    } else {
      return {scale, [map](auto&&... args) { map->signed_query_features(args...); },
              [map](auto&&... args) { map->signed_key_features(args...); }};
    }
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

static_assert(LogFeatureMap<AnyFeatureMap<float, LogFeatureMapTag>>);
static_assert(SignedFeatureMap<AnyFeatureMap<double, SignedFeatureMapTag>>);

}  // namespace phiattn
