#pragma once

// What modifiers make of a kernel's scores: compiled once for a scalar.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/masks/mask.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Where queries and keys stand. Rows are numbered as they were given, and that is how matrices and lists are indexed;
/// positions are what distances are taken of: row + offset and the key's number, unless there are tables of them. A memory,
/// where keys may come in any order, has a table of keys alone, and indexes by positions.
struct Places {
  Index offset = 0;                   // position of query 0
  const Index* of_queries = nullptr;  // (n_q), or none
  const Index* of_keys = nullptr;     // (n_k), or none

  Index query(Index row) const { return of_queries ? of_queries[row] : row + offset; }
  Index key(Index j) const { return of_keys ? of_keys[j] : j; }
  Index query_row(Index row) const { return row + offset; }
  Index key_row(Index j) const { return of_queries ? j : key(j); }
};

/// The document of every key, and from where to where its keys are.
struct DocumentRuns {
  Vector<Index> ids, begin, end;
  bool scattered = false;  // whether there are others' among them

  friend bool operator==(const DocumentRuns& a, const DocumentRuns& b) {
    return a.ids.size() == b.ids.size() && a.ids == b.ids;
  }
};

/// All modifiers of a kernel as one. Their order is fixed: cap, then biases, then masks; which came first does not matter.
template <class S>
struct ScoreRules {
  using Flags = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
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

  /// Whether a run of keys does not say all that a row sees.
  bool is_elementwise(const Places& places) const {
    const auto scattered = [](const auto& runs) { return runs->scattered; };
    return biases_hide || !(masks.empty() && mask_functions.empty() && bias_functions.empty()) ||
           std::any_of(documents.begin(), documents.end(), scattered) ||
           (places.of_keys && !places.of_queries && (left || right || prefix || !documents.empty()));
  }

  /// The run of keys that query `row` can see.
  KeyRange keys(Index row, Index n_k, const Places& places) const;

  /// Throws if a matrix or list does not fit a call of n_q queries and n_k keys.
  void check(Index n_q, Index n_k) const;
  /// The same for queries and keys of a cache, at positions from the first on.
  void check(KeyRange queries, KeyRange keys) const;

  /// The same for n_k keys of which those of log-weight -inf do not exist: nothing is forgotten at them.
  ScoreRules of_existing(const S* log_weights, Index n_k) const;

  /// scores (n) of query `row` with the keys from `key` on: capped, and with all biases.
  void apply(S* scores, Index n, Index row, Index key, const Places& places) const;

  /// hidden (n) |= whether a mask, or a bias of -inf, hides the key.
  void hide(std::uint8_t* hidden, Index n, Index row, Index key, const Places& places) const;

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
