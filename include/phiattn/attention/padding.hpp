#pragma once

// Where queries and keys stand when some of the keys do not exist.

#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Positions count the keys that exist, those of log-weight -inf do not: one that does not has that of the next which does,
/// and query t stands at the last that exists at or before row t + offset.
class Padding {
 public:
  /// @param log_weights  (n_k), or none
  template <ComputeScalar S>
  explicit Padding(const InputView<S>& log_weights) {
    if (!log_weights) return;
    const InputView<S> column = log_weights.as_column();
    Index existing = 0;
    std::vector<Index> keys(static_cast<std::size_t>(column.rows()));
    for (Index j = 0; j < column.rows(); ++j) {
      S weight;
      column.load(j, S(1), {&weight, 1, 1});
      keys[static_cast<std::size_t>(j)] = existing;
      if (weight != -std::numeric_limits<S>::infinity()) ++existing;
    }
    missing_ = column.rows() - existing;
    if (missing_ > 0) keys_ = std::move(keys);
  }

  /// How many keys do not exist.
  Index missing() const { return missing_; }
  const Index* of_keys() const { return keys_.data(); }
  bool exists(Index key) const {
    const auto j = static_cast<std::size_t>(key);
    const Index existing = static_cast<Index>(keys_.size()) - missing_;
    return missing_ == 0 || (j + 1 < keys_.size() ? keys_[j + 1] : existing) != keys_[j];
  }

  Index of_query(Index row) const {
    const Index n_k = static_cast<Index>(keys_.size());
    if (missing_ == 0 || row < 0) return row;
    if (row + 1 >= n_k) return row - missing_;
    return (std::max)(keys_[static_cast<std::size_t>(row + 1)] - 1, Index{0});
  }

 private:
  std::vector<Index> keys_;
  Index missing_ = 0;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
