#pragma once

// What a call of attention is told and what it reports.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// none: every query sees every key. causal: query i sees the keys j <= i + query_offset.
enum class Causality { none, causal };

/// Which query stands beside which key where there are not as many of one as of the other: the last beside the last, as
/// with a cache, or the first beside the first (PyTorch's is_causal).
enum class Alignment { last, first };

struct AttentionOptions {
  Causality causality = Causality::none;

  /// Multiplies q . k, as sqrt(scale) on each side; positive and finite. Default: the similarity's default_scale(d).
  std::optional<double> scale = std::nullopt;

  /// Position of the first query among the keys. Default when causal: by the alignment, n_k - n_q or 0; otherwise 0. Beyond the ends of the keys only position-dependent maps tell one from another, up to +-2^62.
  std::optional<Index> query_offset = std::nullopt;

  /// Tokens worked on at a time: working memory grows with it, results agree to rounding for any.
  Index chunk = 128;

  /// Of causal attention without a query_offset.
  Alignment alignment = Alignment::last;
};

/// Rows whose normaliser is no positive number: it vanished or was negative, which only signed similarities can bring
/// about, or it is NaN, for tokens that are not finite or whose similarities leave the range of the compute type. Their
/// weights are not a distribution: take fewer of their outputs for granted.
struct AttentionStatus {
  Index nonpositive_rows = 0;
  Index first_nonpositive_row = -1;  // -1: none

  /// Rows that a memory held inside the values it had seen, if it was asked to; once for each part of it that had to.
  Index clamped_rows = 0;

  bool ok() const { return nonpositive_rows == 0; }

  void add(Index row) { add({1, row}, 0); }

  /// Takes in the status of other rows, the first of them being row `first` here.
  void add(const AttentionStatus& other, Index first) {
    if (!other.ok()) {
      const Index row = first + other.first_nonpositive_row;
      first_nonpositive_row = ok() ? row : (std::min)(first_nonpositive_row, row);
    }
    nonpositive_rows += other.nonpositive_rows;
    clamped_rows += other.clamped_rows;
  }
};

namespace detail {

/// The scale, whose root, which multiplies queries and keys alike, is representable.
template <class S>
double checked_scale(const AttentionOptions& options, double default_scale) {
  const double scale = options.scale.value_or(default_scale);
  const auto root = static_cast<S>(std::sqrt(scale));
  if (!(root > 0) || !std::isfinite(root)) fail_positive("scale", scale);
  return scale;
}

/// sqrt(scale), which multiplies queries and keys alike.
template <class S>
S root_scale(const AttentionOptions& options, double default_scale) {
  return static_cast<S>(std::sqrt(checked_scale<S>(options, default_scale)));
}

/// A position from which one can count on to any token that there will ever be.
inline Index countable(Index position) {
  constexpr Index kFarthest = Index{1} << 62;
  return std::clamp(position, -kFarthest, kFarthest);
}

/// The position of the first query, as a number that one can count on from.
inline Index query_position(const AttentionOptions& options, Index n_q, Index n_k) {
  const bool beside_last = options.causality == Causality::causal && options.alignment == Alignment::last;
  return countable(options.query_offset.value_or(beside_last ? n_k - n_q : 0));
}

/// Which keys the first causal query sees: those up to this one. Beyond the ends it makes no difference how far.
inline Index causal_offset(const AttentionOptions& options, Index n_q, Index n_k) {
  return std::clamp(query_position(options, n_q, n_k), -n_q, n_k);
}

inline Index checked_chunk(const AttentionOptions& options) {
  check_at_least("chunk", options.chunk, 1);
  return options.chunk;
}

/// What of a call's options a memory is made with.
inline AttentionOptions memory_options(const AttentionOptions& call) {
  return {.scale = call.scale, .chunk = call.chunk};
}

/// The chunk of a memory, which is told nothing that is a matter of calls.
inline Index checked_memory_chunk(const AttentionOptions& options) {
  const auto refuse = [](const char* what, const char* instead) {
    fail_argument(std::string(what) + ": a memory does not take it; " + instead);
  };
  if (options.causality != Causality::none)
    refuse("causality", "advance() is causal, append() and read() are not");
  if (options.query_offset) refuse("query_offset", "read() takes the position of its first query");
  if (options.alignment != Alignment::last) refuse("alignment", "it is for calls of attention()");
  return checked_chunk(options);
}

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI
