#pragma once

// Exact softmax attention to the neighbours of each query. Next: memories/far_memory.hpp.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/memories/token_rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace phiattn::detail {

/// Query t of a block sees the tokens [first + t, last + t) of a run of tokens, those that exist.
struct Band {
  Index first, last;

  Index begin(Index t, Index tokens) const { return std::clamp<Index>(first + t, 0, tokens); }
  Index end(Index t, Index tokens) const { return std::clamp<Index>(last + t, 0, tokens); }
};

template <class S>
struct NearWork {
  Matrix<S> queries;
  Vector<S> weights;
};

/// Partial results of exp(scale q . k) over a band. Cost: 2 n m (d + dv) flops for n queries and m tokens, and an
/// exponential for each pair in the band.
template <class S>
void attend_near(const ConstMatrixRef<S>& q, S scale, const TokenRows<S>& tokens, const Band& band,
                 PartialRows<S> results, NearWork<S>& work) {
  const Index n = q.rows();
  const Index m = tokens.size();
  if (m == 0) {
    results.set_nothing();
    return;
  }
  reserve(work.queries, n, q.cols());
  work.queries.topRows(n) = scale * q;
  auto weights = shaped(work.weights, n, m);
  multiply_transposed<S>(work.queries.topRows(n), tokens.k, weights, band.last - 1);
  for (Index t = 0; t < n; ++t) {
    const Index begin = band.begin(t, m);
    const Index end = band.end(t, m);
    auto row = weights.row(t);
    row.head(begin).setZero();
    row.tail(m - end).setZero();
    auto seen = row.segment(begin, end - begin);
    seen += tokens.log_weights.segment(begin, end - begin).transpose();
    const S highest = largest(seen);
    results.sign(t) = 1;
    if (highest == -std::numeric_limits<S>::infinity()) {
      seen.setZero();
      results.log_normaliser(t) = kNothing<S>;
      continue;
    }
    exp_shifted(row.segment(begin, end - begin), highest);
    const S normaliser = seen.sum();
    seen /= normaliser;
    results.log_normaliser(t) = highest + std::log(normaliser);
  }
  if (largest(tokens.v.cwiseAbs()) < std::numeric_limits<S>::infinity()) {
    results.out.setZero();
    multiply_add<S>(weights, tokens.v, results.out, band.last - 1);
    return;
  }
  // 0 times a non-finite value that the row does not see is NaN.
  for (Index t = 0; t < n; ++t) {
    const Index begin = band.begin(t, m);
    const Index count = band.end(t, m) - begin;
    multiply<S>(weights.row(t).segment(begin, count), tokens.v.middleRows(begin, count),
                results.out.middleRows(t, 1));
  }
}

}  // namespace phiattn::detail
