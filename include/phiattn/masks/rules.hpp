#pragma once

// What is done to a kernel's scores, as the tiles of exact attention ask for it.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/masks/mask.hpp>

#include <cstdint>
#include <memory>

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

/// Behind virtual functions, so that kernels without rules do not compile any.
template <class S>
class Rules {
 public:
  virtual ~Rules() = default;

  /// Whether a run of keys does not say all that a row sees.
  virtual bool is_elementwise(const Places& places) const = 0;

  /// The run of keys that query `row` can see.
  virtual KeyRange keys(Index row, Index n_k, const Places& places) const = 0;

  /// The same for n_k keys of which those of log-weight -inf do not exist: nothing is forgotten at them. None if nothing
  /// changes.
  virtual std::shared_ptr<const Rules> of_existing(const S* log_weights, Index n_k) const = 0;

  /// scores (n) of query `row` with the keys from `key` on: capped, and with all biases.
  virtual void apply(S* scores, Index n, Index row, Index key, const Places& places) const = 0;

  /// hidden (n) |= whether a mask, or a bias of -inf, hides the key.
  virtual void hide(std::uint8_t* hidden, Index n, Index row, Index key, const Places& places) const = 0;

 protected:
  Rules() = default;
  Rules(const Rules&) = default;
  Rules& operator=(const Rules&) = default;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
