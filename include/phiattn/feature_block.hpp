#pragma once

// What a feature map is given and what it fills.

#include <phiattn/core/matrix.hpp>

namespace phiattn::inline PHIATTN_ABI {

/// Which of the two a feature map is given. cosFormer takes both alike, a reparametrised map does not.
enum class Side { queries, keys };

/// Where the features of n tokens go: values (n, m) and one log-scale a token (n).
template <class S>
struct FeatureBlock {
  MatrixRef<S> values;
  VectorRef<S> log_scale;

  Index rows() const { return values.rows(); }
  FeatureBlock middle(Index first, Index n) {
    return {values.middleRows(first, n), log_scale.segment(first, n)};
  }
};

}  // namespace phiattn::inline PHIATTN_ABI
