#pragma once

// What modifiers make of a kernel's scores: compiled once for a scalar.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/masks/rules.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The document of every key, and from where to where its keys are.
struct DocumentRuns {
  Vector<Index> ids, begin, end;
  bool scattered = false;  // whether there are others' among them

  friend bool operator==(const DocumentRuns& a, const DocumentRuns& b) {
    return a.ids.size() == b.ids.size() && a.ids == b.ids;
  }
};

/// Of each query and key, whether the one sees the other.
using Flags = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// All modifiers of a kernel as one. Their order is fixed: cap, then biases, then masks; which came first does not matter.
template <class S>
struct ScoreRules final : Rules<S> {
  template <class T>
  using Shared = std::vector<std::shared_ptr<const T>>;

  std::optional<S> cap;
  S slope = 0;
  Shared<Matrix<S>> biases;
  bool biases_hide = false;       // whether one is -inf
  Shared<Vector<double>> decays;  // cumulative, see Forgetting
  Shared<std::function<S(Index, Index)>> bias_functions;

  std::optional<Index> left, right, prefix;
  Shared<Flags> masks;
  Shared<DocumentRuns> documents;
  Shared<std::function<bool(Index, Index)>> mask_functions;

  std::optional<S> sink;

  bool is_elementwise(const Places& places) const override;
  KeyRange keys(Index row, Index n_k, const Places& places) const override;
  std::shared_ptr<const Rules<S>> of_existing(const S* log_weights, Index n_k) const override;
  void apply(S* scores, Index n, Index row, Index key, const Places& places) const override;
  void hide(std::uint8_t* hidden, Index n, Index row, Index key, const Places& places) const override;

  /// Throws if a matrix or list does not fit a call of n_q queries and n_k keys.
  void check(Index n_q, Index n_k) const;
  /// The same for queries and keys of a cache, at positions from the first on.
  void check(KeyRange queries, KeyRange keys) const;

  bool operator==(const ScoreRules& other) const;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
extern template struct ScoreRules<float>;
extern template struct ScoreRules<double>;
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/masks/score_rules-inl.hpp>
#endif
