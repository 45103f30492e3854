#pragma once

// What goes into a memory.

#include <phiattn/core/input.hpp>
#include <phiattn/core/rows.hpp>

#include <optional>

namespace phiattn::inline PHIATTN_ABI {

/// What may come with the keys and values of an append or advance: `append(k, v, {.log_weights = w, .first = 100})`.
template <detail::ComputeScalar S>
struct TokenOptions {
  /// (n_k), one a key: it counts exp(log_weight) times. One of -inf does not exist, whatever it holds: it has no position
  /// and no place in a window, and its query stands beside the last key that exists. Default: 0.
  Input<S> log_weights = {};

  /// Position of the first of these tokens. Default: behind the last that came.
  std::optional<Index> first = std::nullopt;
};

/// A block of tokens as a memory's insides see it: keys (n, d) and values (n, dv) in the compute type, keys times
/// sqrt(scale). All exist: none has log-weight -inf.
template <class S>
struct Tokens {
  Rows<const S> k, v;
  const S* log_weights = nullptr;  // (n), or none
  Index first = 0;                 // position of the first

  Index size() const { return k.rows; }
  S log_weight(Index j) const { return log_weights ? log_weights[j] : S(0); }
  Tokens middle(Index begin, Index n) const {
    return {k.middle(begin, n), v.middle(begin, n), log_weights ? log_weights + begin : nullptr,
            first + begin};
  }
  Tokens at(Index position) const { return {k, v, log_weights, position}; }
};

/// A block of queries (g n, d), times sqrt(scale), g of them a token: row g t + h is that of head h of a group beside
/// token t, at position first + t.
template <class S>
struct Queries {
  Rows<const S> q;
  Index first = 0;
  Index heads = 1;  // g

  Index rows() const { return q.rows; }
  Index size() const { return q.rows / heads; }  // n
  /// Those beside tokens [begin, begin + n).
  Queries middle(Index begin, Index n) const {
    return {q.middle(heads * begin, heads * n), first + begin, heads};
  }
  Queries at(Index position) const { return {q, position, heads}; }
  /// Those of one head.
  Rows<const S> of_head(Index h) const { return {q.row(h), size(), q.cols, heads * q.stride}; }
};

}  // namespace phiattn::inline PHIATTN_ABI
