#pragma once

// Rows on their way into and out of a memory. Next: memories/block_memory.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>
#include <cmath>

namespace phiattn::detail {

/// Rows of keys and values as they came, unscaled. A key of log-weight -inf comes with zeros.
template <class S>
struct TokenRows {
  ConstMatrixRef<S> k, v;
  ConstVectorRef<S> log_weights;

  Index size() const { return k.rows(); }
  TokenRows slice(Index first, Index n) const {
    return {k.middleRows(first, n), v.middleRows(first, n), log_weights.segment(first, n)};
  }
};

/// Where the rows of a block of queries go: a Partial that someone else owns. A row over no keys has
/// log_normaliser kNothing; the sign of a normaliser that vanished is 0.
template <class S>
struct PartialRows {
  MatrixRef<S> out;
  VectorRef<S> log_normaliser, sign;

  PartialRows slice(Index first, Index n) {
    return {out.middleRows(first, n), log_normaliser.segment(first, n), sign.segment(first, n)};
  }
  void set_nothing() {
    out.setZero();
    log_normaliser.setConstant(kNothing<S>);
    sign.setOnes();
  }
};

/// a <- combine(a, b), row by row.
template <class S>
void combine_rows(PartialRows<S> a, const PartialRows<S>& b) {
  for (Index i = 0; i < a.out.rows(); ++i) {
    const S log_a = a.log_normaliser(i);
    const S log_b = b.log_normaliser(i);
    if (log_b == kNothing<S>) continue;
    if (log_a == kNothing<S>) {
      a.out.row(i) = b.out.row(i);
      a.log_normaliser(i) = log_b;
      a.sign(i) = b.sign(i);
      continue;
    }
    const S largest = std::max(log_a, log_b);
    const S weight_a = a.sign(i) * flushed_exp(log_a - largest);
    const S weight_b = b.sign(i) * flushed_exp(log_b - largest);
    const S sum = weight_a + weight_b;
    a.out.row(i) = (weight_a / sum) * a.out.row(i) + (weight_b / sum) * b.out.row(i);
    a.log_normaliser(i) = largest + std::log(std::abs(sum));
    a.sign(i) = sum < 0 ? S(-1) : sum == 0 ? S(0) : S(1);
  }
}

/// `numbers` as a (rows, cols) matrix, grown if need be. Its layout, and so what vectorised functions round, does not
/// depend on what it was before.
template <class S>
Eigen::Map<Matrix<S>> shaped(Vector<S>& numbers, Index rows, Index cols) {
  if (numbers.size() < rows * cols) numbers.resize(rows * cols);
  return {numbers.data(), rows, cols};
}

/// A block of queries and keys in the compute type, and its results.
template <class S>
struct BlockBuffers {
  Matrix<S> q, k, v, out;
  Vector<S> log_weights, log_normaliser, sign;

  TokenRows<S> load_tokens(const Input<S>& keys, const Input<S>& values, const Input<S>* weights, Index first,
                           Index n) {
    reserve(k, n, keys.cols());
    reserve(v, n, values.cols());
    reserve(log_weights, n, 1);
    keys.load(first, S(1), k.topRows(n));
    values.load(first, S(1), v.topRows(n));
    if (weights) {
      Eigen::Map<Matrix<S>> column(log_weights.data(), n, 1);
      load_log_weights<S>(*weights, first, column, k.topRows(n), v.topRows(n));
    } else {
      log_weights.head(n).setZero();
    }
    return {k.topRows(n), v.topRows(n), log_weights.head(n)};
  }

  ConstMatrixRef<S> load_queries(const Input<S>& queries, Index first, Index n) {
    reserve(q, n, queries.cols());
    queries.load(first, S(1), q.topRows(n));
    return q.topRows(n);
  }

  PartialRows<S> results(Index n, Index dv) {
    reserve(out, n, dv);
    reserve(log_normaliser, n, 1);
    reserve(sign, n, 1);
    return {out.topRows(n), log_normaliser.head(n), sign.head(n)};
  }
};

}  // namespace phiattn::detail
