#pragma once

// Any function of one number as a feature map: generalised attention.

#include <phiattn/core/exp.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/linear_layer.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <memory>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// phi_i(x) = f(w_i . x + b_i), or f(x_i) without a layer: generalised attention (Choromanski et al. 2021, sec. 2.2),
/// and with a trained layer the maps of Kasai et al. 2021.
///
/// A similarity of its own, not an approximation of exp(q . k); its default scale is 1. Made by relu_features,
/// squared_relu_features, softplus_features, sigmoid_features, and for an f of your own by log_elementwise_features
/// (f >= 0, given as ln f) or signed_elementwise_features (any f).
///
/// Features of 0 are legal: a query without others attends to nothing and gets 0, a key without others does not
/// exist. Where f is signed, or two tokens have no feature in common, a whole normaliser can be 0 as well: of a
/// positive map that row gets 0, of a signed one it is reported.
/// Works in models trained with it. Fails as a stand-in for softmax: relu weighs by angle and length, not by exp.
/// Cost: that of the layer and n m calls of f for n tokens.
template <detail::ComputeScalar S, class Tag, class F>
class ElementwiseFeatures : public FeatureMapBase<ElementwiseFeatures<S, Tag, F>, S, Tag> {
 public:
  static constexpr bool kUniform = true;
  static constexpr bool kNeverZero = requires { requires F::kNeverZero; };

  ElementwiseFeatures(LinearLayer<S> layer, F f)
      : layer_(std::move(layer)), f_(std::make_shared<const F>(std::move(f))) {}

  Index dimension() const { return layer_.dimension(); }
  Index feature_dimension() const { return layer_.feature_dimension(); }

  /// Where f is signed, a row is divided by its largest |f|, which goes to log_scale.
  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    layer_.apply(x, block.values);
    block.values = block.values.unaryExpr([this](S number) { return static_cast<S>((*f_)(number)); });
    block.log_scale.setZero();
    if constexpr (std::same_as<Tag, SignedFeatureMapTag>) {
      for (Index t = 0; t < x.rows(); ++t) {
        const S size = detail::largest(block.values.row(t).cwiseAbs());
        block.log_scale(t) = size == 0 ? kNothing<S> : std::log(size);
        if (size != 0) block.values.row(t) /= size;
      }
    }
  }

 private:
  LinearLayer<S> layer_;
  std::shared_ptr<const F> f_;
};

/// ln max(0, x): -inf where x <= 0.
struct LogRelu {
  template <class S>
  S operator()(S x) const {
    return x <= 0 ? -std::numeric_limits<S>::infinity() : std::log(x);
  }
};

/// ln max(0, x)^2
struct LogSquaredRelu {
  template <class S>
  S operator()(S x) const {
    return 2 * LogRelu{}(x);
  }
};

/// ln ln(1 + e^x)
struct LogSoftplus {
  static constexpr bool kNeverZero = true;

  template <class S>
  S operator()(S x) const {
    if (x > 0) return std::log(x + std::log1p(std::exp(-x)));
    // ln(1 + e^x) = e^x (1 - e^x/2 + ...)
    return std::exp(x) < std::numeric_limits<S>::epsilon() ? x : std::log(std::log1p(std::exp(x)));
  }
};

/// ln 1/(1 + e^-x)
struct LogSigmoid {
  static constexpr bool kNeverZero = true;

  template <class S>
  S operator()(S x) const {
    return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x));
  }
};

/// phi_i(x) = f(w_i . x + b_i) >= 0, given by log_f = ln f: -inf where f is 0.
/// @param layer  a dimension d, a matrix or projection W, or {W, b}
/// @param log_f  S -> S, copied
template <detail::ComputeScalar S, class LogF>
requires std::regular_invocable<const LogF&, S> ElementwiseFeatures<S, LogFeatureMapTag, LogF>
log_elementwise_features(LinearLayer<S> layer, LogF log_f) {
  return {std::move(layer), std::move(log_f)};
}

/// phi_i(x) = f(w_i . x + b_i), of either sign.
template <detail::ComputeScalar S, class F>
requires std::regular_invocable<const F&, S> ElementwiseFeatures<S, SignedFeatureMapTag, F>
signed_elementwise_features(LinearLayer<S> layer, F f) {
  return {std::move(layer), std::move(f)};
}

/// phi_i(x) = max(0, w_i . x + b_i). With iid normal w_i, phi(q) . phi(k) / m estimates the arc-cosine kernel of
/// degree 1, |q| |k| (sin a + (pi - a) cos a) / (2 pi), a the angle between q and k (Cho & Saul 2009).
template <detail::ComputeScalar S>
auto relu_features(LinearLayer<S> layer) {
  return log_elementwise_features<S>(std::move(layer), LogRelu{});
}

/// phi_i(x) = max(0, w_i . x + b_i)^2
template <detail::ComputeScalar S>
auto squared_relu_features(LinearLayer<S> layer) {
  return log_elementwise_features<S>(std::move(layer), LogSquaredRelu{});
}

/// phi_i(x) = ln(1 + exp(w_i . x + b_i))
template <detail::ComputeScalar S>
auto softplus_features(LinearLayer<S> layer) {
  return log_elementwise_features<S>(std::move(layer), LogSoftplus{});
}

/// phi_i(x) = 1 / (1 + exp(-w_i . x - b_i))
template <detail::ComputeScalar S>
auto sigmoid_features(LinearLayer<S> layer) {
  return log_elementwise_features<S>(std::move(layer), LogSigmoid{});
}

}  // namespace phiattn::inline PHIATTN_ABI
