#pragma once

// What a kernel's scores can be modified by: phiattn::with(kernel, modifier...).
//
// Of query i and key j, at their positions, a score is scale q.k; then capped; then all biases and log-weights are added;
// then masks say whether i sees j at all. Their order of writing does not matter, and several of a kind add up or intersect.

#include <phiattn/core/check.hpp>
#include <phiattn/masks/score_rules.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// Query i sees the keys from i - left to i + right.
struct SlidingWindow {
  Index left;
  Index right = 0;

  static constexpr bool kMask = true;
  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    detail::check_at_least("left of SlidingWindow", left, 0);
    detail::check_at_least("right of SlidingWindow", right, 0);
    rules.left = (std::min)(rules.left.value_or(left), left);
    rules.right = (std::min)(rules.right.value_or(right), right);
  }
};

/// A whole mask: query i sees the keys j < n, and those at or before it (Raffel et al. 2020, "causal with prefix"), whatever
/// the causality of the call.
struct PrefixCausal {
  Index n;

  static constexpr bool kMask = true;
  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    detail::check_at_least("n of PrefixCausal", n, 0);
    if (rules.prefix) detail::fail_argument("PrefixCausal: got two, expected one");
    rules.prefix = n;
  }
};

/// score += -slope |i - j|   (Press et al. 2022), not times the scale.
struct Alibi {
  double slope;

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    if (!std::isfinite(slope))
      detail::fail_argument("slope of Alibi: got " + detail::number(slope) + ", expected a finite number");
    rules.slope += static_cast<S>(slope);
  }
};

/// score <- cap tanh(score / cap), before any bias   (Gemma 2; PyTorch's flex attention calls it softcap).
struct SoftCap {
  double cap;

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    detail::checked_positive("cap of SoftCap", cap);
    if (rules.cap) detail::fail_argument("SoftCap: got two, expected one");
    rules.cap = static_cast<S>(cap);
  }
};

/// A key without value: exp(logit) joins every normaliser, once a row, when it is divided (an attention sink). A row without
/// keys stays 0, and partial results do not contain it: join_sink(partial, logit).
struct Sink {
  double logit;

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    if (!(logit < std::numeric_limits<double>::infinity())) {
      detail::fail_argument("logit of Sink: got " + detail::number(logit) +
                            ", expected a number below infinity");
    }
    const double before =
        rules.sink ? static_cast<double>(*rules.sink) : -std::numeric_limits<double>::infinity();
    const double top = (std::max)(before, logit);
    if (top == -std::numeric_limits<double>::infinity()) return;
    rules.sink = static_cast<S>(top + std::log(std::exp(before - top) + std::exp(logit - top)));
  }
};

/// Query i sees key j where mask(i, j): (n_q, n_k), by the rows as they were given. In a cache row and column are positions,
/// and the mask must be large enough for all of them.
class BooleanMask {
 public:
  static constexpr bool kMask = true;

  template <class D>
  explicit BooleanMask(const Eigen::DenseBase<D>& sees)
      : sees_(std::make_shared<const detail::Flags>(
            (sees.derived().array() != typename D::Scalar(0)).template cast<std::uint8_t>())) {}

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    rules.masks.push_back(sees_);
  }

 private:
  std::shared_ptr<const detail::Flags> sees_;
};

/// score += bias(i, j): (n_q, n_k), by the rows as they were given; -inf hides the key. In a cache as BooleanMask.
class Bias {
 public:
  template <class D>
  explicit Bias(const Eigen::DenseBase<D>& bias)
      : bias_(std::make_shared<const Matrix<double>>(bias.derived().template cast<double>())) {}

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    rules.biases_hide |= (bias_->array() == -std::numeric_limits<double>::infinity()).any();
    if constexpr (std::same_as<S, double>) {
      rules.biases.push_back(bias_);
    } else {
      rules.biases.push_back(std::make_shared<const Matrix<S>>(bias_->template cast<S>()));
    }
  }

 private:
  std::shared_ptr<const Matrix<double>> bias_;
};

/// A query sees the keys of its own document: that of the key at its position. One id a key, in any order.
class Documents {
 public:
  static constexpr bool kMask = true;

  template <detail::RangeOfIntegers R>
  explicit Documents(const R& ids) {
    auto runs = std::make_shared<detail::DocumentRuns>();
    std::vector<Index> all;
    for (const auto id : ids) all.push_back(static_cast<Index>(id));
    const Index n = static_cast<Index>(all.size());
    runs->ids = Eigen::Map<const Vector<Index>>(all.data(), n);
    runs->begin.resize(n);
    runs->end.resize(n);
    // By id, and by number within each.
    std::vector<Index> order(all.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](Index i, Index j) { return runs->ids(i) < runs->ids(j); });
    for (std::size_t first = 0, end; first < order.size(); first = end) {
      for (end = first + 1; end < order.size() && runs->ids(order[end]) == runs->ids(order[first]);) ++end;
      runs->scattered |= order[end - 1] - order[first] != static_cast<Index>(end - first) - 1;
      for (std::size_t i = first; i < end; ++i) {
        runs->begin(order[i]) = order[first];
        runs->end(order[i]) = order[end - 1] + 1;
      }
    }
    runs_ = std::move(runs);
  }

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    rules.documents.push_back(runs_);
  }

 private:
  std::shared_ptr<const detail::DocumentRuns> runs_;
};

/// score += sum of log_decay over the keys behind j up to i: softmax attention with a forget gate (Lin et al. 2025). One
/// log_decay a key, finite; between a query and a later key they count the same.
class Forgetting {
 public:
  template <class D>
  explicit Forgetting(const Eigen::DenseBase<D>& log_decay) {
    detail::check_vector("log_decay of Forgetting", log_decay.rows(), log_decay.cols(), "a vector",
                         log_decay.size());
    auto sums = std::make_shared<Vector<double>>(log_decay.size());
    double sum = 0;
    for (Index j = 0; j < log_decay.size(); ++j) {
      sum += static_cast<double>(log_decay.derived().reshaped()(j));
      if (!std::isfinite(sum))
        detail::fail_argument("log_decay of Forgetting: number " + std::to_string(j) + " is not finite");
      (*sums)(j) = sum;
    }
    sums_ = std::move(sums);
  }

  template <class S>
  void add_to(detail::ScoreRules<S>& rules) const {
    rules.decays.push_back(sums_);
  }

 private:
  std::shared_ptr<const Vector<double>> sums_;
};

namespace detail {

template <class M, class S>
concept NamedModifier = requires(const M& modifier, ScoreRules<S>& rules) {
  modifier.add_to(rules);
};

/// A function of (query position, key position): whether the one sees the other, or what is added to their score.
template <class M>
concept ScoreFunction = std::regular_invocable<const M&, Index, Index> &&
    std::is_arithmetic_v<std::invoke_result_t<const M&, Index, Index>>;

template <class M, class S>
concept Modifier = NamedModifier<M, S> || ScoreFunction<M>;

/// Says which keys are seen, and touches no score: a signed kernel's too.
template <class M>
concept MaskModifier = requires {
  requires M::kMask;
}
|| (ScoreFunction<M> && std::same_as<std::invoke_result_t<const M&, Index, Index>, bool>);

template <class S, class M>
void add_modifier(ScoreRules<S>& rules, const M& modifier) {
  if constexpr (NamedModifier<M, S>) {
    modifier.add_to(rules);
  } else if constexpr (std::same_as<std::invoke_result_t<const M&, Index, Index>, bool>) {
    rules.mask_functions.push_back(std::make_shared<const std::function<bool(Index, Index)>>(modifier));
  } else {
    rules.bias_functions.push_back(std::make_shared<const std::function<S(Index, Index)>>(
        [modifier](Index i, Index j) { return static_cast<S>(modifier(i, j)); }));
  }
}

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI
