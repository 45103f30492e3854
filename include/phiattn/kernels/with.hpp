#pragma once

// Kernels with masks, biases and what else is done to scores.

#include <phiattn/masks/modifiers.hpp>
#include <phiattn/similarity.hpp>

#include <memory>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// A kernel and what its scores are modified by; made by with(). Of one type whatever the modifiers are, so that heads with
/// other slopes or masks can stand in one list.
template <Kernel K>
class ModifiedKernel {
 public:
  using Scalar = typename K::Scalar;
  using S = Scalar;
  using Kind = typename K::Kind;
  static constexpr bool kScaleOnQueries = detail::kScaleOnQueries<K>;

  template <class... M>
  explicit ModifiedKernel(K kernel, const detail::ScoreRules<S>& before, const M&... modifiers)
      : kernel_(std::move(kernel)) {
    auto rules = std::make_shared<detail::ScoreRules<S>>(before);
    (detail::add_modifier(*rules, modifiers), ...);
    rules_ = std::move(rules);
  }

  const K& kernel() const { return kernel_; }
  const detail::ScoreRules<S>& rules() const { return *rules_; }

  bool is_never_zero() const { return detail::is_never_zero(kernel_); }
  double default_scale(Index d) const { return kernel_.default_scale(d); }

  // Of the pairs themselves; attention knows where they stand, and applies the rules.
  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k,
                  MatrixRef<S> tile) const requires std::same_as<Kind, LogKernelTag> {
    Vector<S> none(0);
    detail::fill_similarity(kernel_, q, k, tile, none);
  }
  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile,
                  VectorRef<S> log_scale) const requires std::same_as<Kind, SignedKernelTag> {
    detail::fill_similarity(kernel_, q, k, tile, log_scale);
  }

 private:
  K kernel_;
  std::shared_ptr<const detail::ScoreRules<S>> rules_;
};

/// The kernel with its scores modified: with(softmax, Alibi{0.25}, SoftCap{30}, SlidingWindow{128, 0}), see
/// masks/modifiers.hpp. A lambda of (query position, key position) is a mask if it returns bool, else a bias. Signed kernels
/// take masks.
/// @throws std::invalid_argument  on options out of range
template <Kernel K, class... M>
ModifiedKernel<K> with(K kernel, const M&... modifiers) {
  static_assert((detail::Modifier<M, typename K::Scalar> && ...),
                "phiattn: with() takes the modifiers of masks/modifiers.hpp and functions of two positions");
  static_assert(LogKernel<K> || (detail::MaskModifier<M> && ...),
                "phiattn: SoftCap, Bias, Alibi, Forgetting, Sink and functions that return a number change "
                "the logarithm of a "
                "similarity: of a signed kernel there is none; it takes masks");
  return ModifiedKernel<K>(std::move(kernel), {}, modifiers...);
}
template <Kernel K, class... M>
ModifiedKernel<K> with(const ModifiedKernel<K>& kernel, const M&... modifiers) {
  static_assert((detail::Modifier<M, typename K::Scalar> && ...),
                "phiattn: with() takes the modifiers of masks/modifiers.hpp and functions of two positions");
  static_assert(LogKernel<K> || (detail::MaskModifier<M> && ...),
                "phiattn: SoftCap, Bias, Alibi, Forgetting, Sink and functions that return a number change "
                "the logarithm of a "
                "similarity: of a signed kernel there is none; it takes masks");
  return ModifiedKernel<K>(kernel.kernel(), kernel.rules(), modifiers...);
}
template <FeatureMap F, class... M>
void with(const F&, const M&...) {
  static_assert(
      !FeatureMap<F>,
      "phiattn: a feature map has no scores to modify; it takes key weights (weighted) and a PrefixMask");
}

}  // namespace phiattn::inline PHIATTN_ABI
