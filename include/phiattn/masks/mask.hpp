#pragma once

// Which keys a row of queries sees.

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <concepts>

namespace phiattn::inline PHIATTN_ABI {

/// The keys [begin, end) of a row.
struct KeyRange {
  Index begin, end;

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

/// Says for every row of queries which run of the n_k keys it sees: 0 <= begin <= end <= n_k, end 0 for none.
template <class M>
concept Mask = std::copyable<M> && requires(const M& mask, Index row, Index n_k) {
  { mask.keys(row, n_k) } -> std::same_as<KeyRange>;
};

/// A mask that hides no key before one that it shows, and shows a row whatever it showed the rows before: what a
/// running sum over keys can do. It says so by `static constexpr bool kPrefix = true`.
template <class M>
concept PrefixMask = Mask<M> && requires {
  requires M::kPrefix;
};

/// Every row sees every key.
struct AllKeys {
  static constexpr bool kPrefix = true;
  KeyRange keys(Index /*row*/, Index n_k) const { return {0, n_k}; }
};

/// Row i sees the keys j <= i + offset.
struct CausalMask {
  static constexpr bool kPrefix = true;
  Index offset = 0;

  KeyRange keys(Index row, Index n_k) const { return {0, std::clamp<Index>(offset + 1 + row, 0, n_k)}; }
};

/// Row i sees the keys i + first <= j < i + last: a window.
struct BandMask {
  Index first, last;

  KeyRange keys(Index row, Index n_k) const {
    const Index end = std::clamp<Index>(last + row, 0, n_k);
    return {std::clamp<Index>(first + row, 0, end), end};
  }
};

namespace detail {

/// Any mask behind a pointer and a function.
struct MaskRef {
  const void* mask;
  KeyRange (*of)(const void* mask, Index row, Index n_k);

  KeyRange keys(Index row, Index n_k) const { return of(mask, row, n_k); }
};

template <Mask M>
MaskRef mask_ref(const M& mask) {
  return {&mask,
          [](const void* any, Index row, Index n_k) { return static_cast<const M*>(any)->keys(row, n_k); }};
}

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI
