#pragma once

// How queries read the tokens of a cluster.

#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/token_store.hpp>
#include <phiattn/core/rows.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// A query that reads the first `visible` tokens of a bucket.
struct BucketReader {
  Index row, visible;
};

/// Exact attention of n rows of x, in order, to a bucket's tokens; none sees fewer than the one before. Joins `out`.
template <class S>
void read_bucket(Rows<const S> x, const TokenStore<S>& bucket, const BucketReader* readers, Index n,
                 const RowSums<S>& out);

}  // namespace phiattn::inline PHIATTN_ABI::detail
