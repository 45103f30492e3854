#pragma once

// What a feature map need not write itself. Next: feature_maps/positive_random.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/similarity.hpp>

namespace phiattn {

namespace detail {

/// A map that takes queries and keys alike, but asks where they stand.
template <class F>
concept PositionedLogMap = requires(const F& f, ConstMatrixRef<typename F::Scalar> x, Index first,
                                    MatrixRef<typename F::Scalar> features,
                                    VectorRef<typename F::Scalar> log_scale) {
  f.log_features(x, first, features, log_scale);
};
template <class F>
concept PositionedSignedMap = requires(const F& f, ConstMatrixRef<typename F::Scalar> x, Index first,
                                       MatrixRef<typename F::Scalar> features,
                                       VectorRef<typename F::Scalar> log_scale) {
  f.signed_features(x, first, features, log_scale);
};

/// Fills features and log_scale for the tokens of x by `fill(tokens, first, features, log_scale)`.
template <class S, class Fill>
Matrix<S> looked_at(const Input<S>& x, Index first, Index m, Vector<S>& log_scale, const Fill& fill) {
  Matrix<S> tokens(x.rows(), x.cols());
  x.load(0, S(1), tokens);
  Matrix<S> features(x.rows(), m);
  log_scale.resize(x.rows());
  fill(tokens, first, features, log_scale);
  return features;
}

}  // namespace detail

/// Base of a positive map. `Derived` writes dimension(), feature_dimension() and either
///
///     log_features(x, features, log_scale)           where phi = varphi wherever a token stands,
///     log_features(x, first, features, log_scale)    where phi = varphi at equal positions, or
///     log_query_features(x, first, features, log_scale) and log_key_features(...) where not.
///
/// It gets its Kind, the default scale 1 and a look at phi itself.
template <class Derived, detail::ComputeScalar S>
class LogFeatureMapBase {
 public:
  using Scalar = S;
  using Kind = LogFeatureMapTag;

  static double default_scale(Index) { return 1; }

  template <class Map = Derived>
  requires detail::UniformLogMap<Map> || detail::PositionedLogMap<Map>
  void log_query_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                          VectorRef<S> log_scale) const {
    take_alike(x, first, features, log_scale);
  }

  template <class Map = Derived>
  requires detail::UniformLogMap<Map> || detail::PositionedLogMap<Map>
  void log_key_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                        VectorRef<S> log_scale) const {
    take_alike(x, first, features, log_scale);
  }

  /// phi(x), (n, m), for tokens x (n, d) of which the first is at position `first`; x comes scaled or not, as you
  /// like. May overflow where attention does not.
  Matrix<S> query_features(const Input<S>& x, Index first = 0) const {
    return exponentials(x, first, [this](auto&&... args) { derived().log_query_features(args...); });
  }

  /// varphi(x), likewise.
  Matrix<S> key_features(const Input<S>& x, Index first = 0) const {
    return exponentials(x, first, [this](auto&&... args) { derived().log_key_features(args...); });
  }

 private:
  void take_alike(const ConstMatrixRef<S>& x, Index first, MatrixRef<S>& features,
                  VectorRef<S>& log_scale) const {
    if constexpr (detail::UniformLogMap<Derived>) {
      derived().log_features(x, features, log_scale);
    } else {
      derived().log_features(x, first, features, log_scale);
    }
  }

  const Derived& derived() const { return static_cast<const Derived&>(*this); }

  template <class Fill>
  Matrix<S> exponentials(const Input<S>& x, Index first, const Fill& fill) const {
    detail::check_equal("columns of x", x.cols(), "dimension of the feature map", derived().dimension());
    Vector<S> log_scale;
    Matrix<S> features = detail::looked_at(x, first, derived().feature_dimension(), log_scale, fill);
    for (Index t = 0; t < x.rows(); ++t) detail::exp_shifted(features.row(t), -log_scale(t));
    return features;
  }
};

/// Base of a signed map; as above, with signed_features, signed_query_features and signed_key_features.
template <class Derived, detail::ComputeScalar S>
class SignedFeatureMapBase {
 public:
  using Scalar = S;
  using Kind = SignedFeatureMapTag;

  static double default_scale(Index) { return 1; }

  template <class Map = Derived>
  requires detail::UniformSignedMap<Map> || detail::PositionedSignedMap<Map>
  void signed_query_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                             VectorRef<S> log_scale) const {
    take_alike(x, first, features, log_scale);
  }

  template <class Map = Derived>
  requires detail::UniformSignedMap<Map> || detail::PositionedSignedMap<Map>
  void signed_key_features(const ConstMatrixRef<S>& x, Index first, MatrixRef<S> features,
                           VectorRef<S> log_scale) const {
    take_alike(x, first, features, log_scale);
  }

  Matrix<S> query_features(const Input<S>& x, Index first = 0) const {
    return scaled(x, first, [this](auto&&... args) { derived().signed_query_features(args...); });
  }

  Matrix<S> key_features(const Input<S>& x, Index first = 0) const {
    return scaled(x, first, [this](auto&&... args) { derived().signed_key_features(args...); });
  }

 private:
  void take_alike(const ConstMatrixRef<S>& x, Index first, MatrixRef<S>& features,
                  VectorRef<S>& log_scale) const {
    if constexpr (detail::UniformSignedMap<Derived>) {
      derived().signed_features(x, features, log_scale);
    } else {
      derived().signed_features(x, first, features, log_scale);
    }
  }

  const Derived& derived() const { return static_cast<const Derived&>(*this); }

  template <class Fill>
  Matrix<S> scaled(const Input<S>& x, Index first, const Fill& fill) const {
    detail::check_equal("columns of x", x.cols(), "dimension of the feature map", derived().dimension());
    Vector<S> log_scale;
    Matrix<S> features = detail::looked_at(x, first, derived().feature_dimension(), log_scale, fill);
    for (Index t = 0; t < x.rows(); ++t) features.row(t) *= std::exp(log_scale(t));
    return features;
  }
};

}  // namespace phiattn
