#pragma once

// Feature maps and kernels behind a pointer and a function, so that what works with them is compiled once a scalar.

#include <phiattn/core/rows.hpp>
#include <phiattn/masks/rules.hpp>
#include <phiattn/similarity.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// exp(q . k) itself, which a decoding step knows by heart.
template <class K>
concept Exponential = requires {
  requires K::kExponential;
};

/// One indirect call a block.
template <class S>
struct MapRef {
  const void* map;
  Index features;
  bool uniform;  // keys and queries may come in one block
  bool never_zero;
  void (*fill)(const void* map, Side side, Rows<const S> x, Index first, Rows<S> values, S* log_scale);

  template <FeatureMap F>
  static MapRef of(const F& map) {
    return {&map, map.feature_dimension(), is_uniform(map), is_never_zero(map),
            [](const void* any, Side side, Rows<const S> x, Index first, Rows<S> values, S* log_scale) {
              fill_features(*static_cast<const F*>(any), side, x.eigen(), first,
                            {values.eigen(), Eigen::Map<Vector<S>>(log_scale, values.rows)});
            }};
  }
};

/// A kernel whose scores are modified: see kernels/with.hpp.
template <class K>
concept Modified = requires(const K& kernel) {
  { kernel.rules() } -> std::convertible_to<const Rules<typename K::Scalar>&>;
};

/// One indirect call a tile.
template <class S>
struct KernelRef {
  const void* kernel;
  bool positive;  // hands over logarithms
  bool never_zero;
  const Rules<S>* rules;  // or none
  void (*fill)(const void* kernel, Rows<const S> q, Rows<const S> k, Rows<S> tile, S* log_scale);

  template <Kernel K>
  static KernelRef of(const K& kernel) {
    const Rules<S>* rules = nullptr;
    if constexpr (Modified<K>) rules = &kernel.rules();
    return {&kernel, LogKernel<K>, is_never_zero(kernel), rules,
            [](const void* any, Rows<const S> q, Rows<const S> k, Rows<S> tile, S* log_scale) {
              fill_similarity(*static_cast<const K*>(any), q.eigen(), k.eigen(), tile.eigen(),
                              Eigen::Map<Vector<S>>(log_scale, tile.rows));
            }};
  }
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
