#pragma once

// A trained map that mimics softmax.

#include <phiattn/core/exp.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/linear_layer.hpp>

#include <cmath>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// none: the exponentials themselves. softmax: each half divided by its sum, as trained maps are often used.
enum class HedgehogNormalisation { none, softmax };

/// phi(x) = (exp(W x + b), exp(-W x - b)), of 2m features   (Zhang et al. 2024, "The Hedgehog & the Porcupine").
///
/// Trained, head by head, so that its attention comes near to that of softmax; the W and b that come out of training
/// are given here. Default scale 1: what scaling there was in training belongs into W.
/// Works where it was trained: spiky, monotone weights with few features. Without training, W = I, it is
/// sum_i 2 cosh(q_i + k_i): a similarity of its own, which also favours the opposite of what agrees.
/// @param layer  a dimension d (W = I), a matrix or projection W (m, d), or {W, b}
/// @throws std::invalid_argument  as LinearLayer does
/// Cost: that of the layer for n tokens, and n m exponentials where softmax; the 2 n m of the features are the
/// state's.
template <detail::ComputeScalar S>
class HedgehogFeatures : public LogFeatureMapBase<HedgehogFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;
  static constexpr bool kNeverZero = true;

  explicit HedgehogFeatures(LinearLayer<S> layer,
                            HedgehogNormalisation normalisation = HedgehogNormalisation::none)
      : layer_(std::move(layer)), normalisation_(normalisation) {}

  Index dimension() const { return layer_.dimension(); }
  Index feature_dimension() const { return 2 * layer_.feature_dimension(); }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    const Index m = layer_.feature_dimension();
    layer_.apply(x, block.values.leftCols(m));
    block.values.rightCols(m) = -block.values.leftCols(m);
    block.log_scale.setZero();
    if (normalisation_ == HedgehogNormalisation::none) return;
    for (Index t = 0; t < x.rows(); ++t) {
      subtract_log_sum(block.values.row(t).head(m));
      subtract_log_sum(block.values.row(t).tail(m));
    }
  }

 private:
  /// x <- x - log sum_i exp(x_i)
  template <class Row>
  static void subtract_log_sum(Row x) {
    x.array() -= detail::largest(x);
    x.array() -= std::log(x.array().unaryExpr(detail::FlushedExp<S>{}).sum());
  }

  LinearLayer<S> layer_;
  HedgehogNormalisation normalisation_;
};

}  // namespace phiattn::inline PHIATTN_ABI
