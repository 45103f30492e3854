#pragma once

// What a feature map need not write itself.

#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/former_calls.hpp>
#include <phiattn/similarity.hpp>

#include <cmath>
#include <concepts>

namespace phiattn::inline PHIATTN_ABI {

/// Base of a map of either kind. `Derived` writes dimension(), feature_dimension() and
///
///     features(side, x, first, block)    tokens x (n, d), the first at position `first`, into block (n, m)
///
/// and, where neither side nor position matter, kUniform = true. It gets its Kind, the default scale 1 and a look at phi
/// itself.
template <class Derived, detail::ComputeScalar S, class Tag>
class FeatureMapBase : public detail::FormerFeatureCalls<Derived, S> {
 public:
  using Scalar = S;
  using Kind = Tag;

  static double default_scale(Index) { return 1; }

  /// phi(x), (n, m), for tokens x (n, d) of which the first is at position `first`; x comes scaled or not, as you
  /// like. May overflow where attention does not.
  Matrix<S> query_features(const Input<S>& x, Index first = 0) const { return look(Side::queries, x, first); }

  /// varphi(x), likewise.
  Matrix<S> key_features(const Input<S>& x, Index first = 0) const { return look(Side::keys, x, first); }

 private:
  Matrix<S> look(Side side, const Input<S>& x, Index first) const {
    const auto& map = static_cast<const Derived&>(*this);
    detail::check_equal("columns of x", x.cols(), "dimension of the feature map", map.dimension());
    Matrix<S> tokens(x.rows(), x.cols());
    x.load(0, S(1), tokens);
    Matrix<S> phi(x.rows(), map.feature_dimension());
    Vector<S> log_scale(x.rows());
    detail::fill_features(map, side, tokens, first, {phi, log_scale});
    for (Index t = 0; t < x.rows(); ++t) {
      if constexpr (std::same_as<Tag, LogFeatureMapTag>) {
        detail::exp_shifted(phi.row(t), -log_scale(t));
      } else {
        phi.row(t) *= std::exp(log_scale(t));
      }
    }
    return phi;
  }
};

/// Base of a positive map: block.values + block.log_scale are logarithms.
template <class Derived, class S>
using LogFeatureMapBase = FeatureMapBase<Derived, S, LogFeatureMapTag>;

/// Base of a signed map: phi = block.values exp(block.log_scale).
template <class Derived, class S>
using SignedFeatureMapBase = FeatureMapBase<Derived, S, SignedFeatureMapTag>;

}  // namespace phiattn::inline PHIATTN_ABI
