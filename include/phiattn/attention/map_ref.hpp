#pragma once

// Feature maps and kernels behind a pointer and a function, so that what works with them is compiled once a scalar.

#include <phiattn/core/rows.hpp>
#include <phiattn/similarity.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

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

/// One indirect call a tile.
template <class S>
struct KernelRef {
  const void* kernel;
  bool positive;  // hands over logarithms
  bool never_zero;
  void (*fill)(const void* kernel, Rows<const S> q, Rows<const S> k, Rows<S> tile, S* log_scale);

  template <Kernel K>
  static KernelRef of(const K& kernel) {
    return {&kernel, LogKernel<K>, is_never_zero(kernel),
            [](const void* any, Rows<const S> q, Rows<const S> k, Rows<S> tile, S* log_scale) {
              fill_similarity(*static_cast<const K*>(any), q.eigen(), k.eigen(), tile.eigen(),
                              Eigen::Map<Vector<S>>(log_scale, tile.rows));
            }};
  }
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
