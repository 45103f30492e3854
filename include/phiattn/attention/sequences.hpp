#pragma once

// Where sequences begin that are packed one behind the other.

#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

struct RowRange {
  Index first, n;
};

}  // namespace detail

/// Sequence s has the rows [query_offsets[s], query_offsets[s + 1]) of q and [key_offsets[s], key_offsets[s + 1]) of k and
/// v: one offset more than there are sequences, the first 0 and the last the number of rows. Any may be empty.
/// @throws std::invalid_argument  if there are no offsets, not as many for queries as for keys, or if they fall or do not
///                                begin with 0
class Sequences {
 public:
  template <detail::RangeOfIntegers Q, detail::RangeOfIntegers K>
  Sequences(const Q& query_offsets, const K& key_offsets)
      : queries_(taken("query_offsets", query_offsets)), keys_(taken("key_offsets", key_offsets)) {
    detail::check_equal("number of key_offsets", static_cast<Index>(keys_.size()), "number of query_offsets",
                        static_cast<Index>(queries_.size()));
  }

  Index size() const { return static_cast<Index>(queries_.size()) - 1; }
  detail::RowRange queries(Index s) const { return at(queries_, s); }
  detail::RowRange keys(Index s) const { return at(keys_, s); }

  void check(Index n_q, Index n_k) const {
    detail::check_equal("last of query_offsets", queries_.back(), "rows of q", n_q);
    detail::check_equal("last of key_offsets", keys_.back(), "rows of k", n_k);
  }

 private:
  template <class R>
  static std::vector<Index> taken(const char* name, const R& offsets) {
    std::vector<Index> all;
    for (const auto offset : offsets) {
      if (all.empty())
        detail::check_equal((std::string("first of ") + name).c_str(), static_cast<Index>(offset), "0", 0);
      if (!all.empty()) detail::check_at_least(name, static_cast<Index>(offset), all.back());
      all.push_back(static_cast<Index>(offset));
    }
    if (all.empty())
      detail::fail_argument(std::string(name) + ": got none, expected one more than there are sequences");
    return all;
  }

  static detail::RowRange at(const std::vector<Index>& offsets, Index s) {
    const auto i = static_cast<std::size_t>(s);
    return {offsets[i], offsets[i + 1] - offsets[i]};
  }

  std::vector<Index> queries_, keys_;
};

}  // namespace phiattn::inline PHIATTN_ABI
