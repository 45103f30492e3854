#pragma once

// Which of several centres is nearest to a row.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Index of the nearest centre of each row: argmin_c |x - c|^2, the first of equals. A row that is not finite gets 0.
/// `scores` (n, C) is scratch. Cost: 2 n C d flops.
template <class S>
void nearest_centres(Rows<const S> x, Rows<const S> centres, const S* half_squares, Rows<S> scores,
                     Index* nearest) {
  multiply_transposed<S>(x, centres, scores);
  for (Index t = 0; t < x.rows; ++t) {
    const S* const row = scores.row(t);
    nearest[t] = 0;
    S best = row[0] - half_squares[0];
    for (Index c = 1; c < centres.rows; ++c) {
      const S score = row[c] - half_squares[c];
      if (!(score > best)) continue;
      best = score;
      nearest[t] = c;
    }
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
