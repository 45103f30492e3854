// Queries and keys of every head on a text, to calibrate memories with.
#pragma once

#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/core/heads.hpp>
#include <phiattn/kernels/exponential.hpp>

#include "head_memory.hpp"

namespace examples {

/// What one head of keys computed, a row a token.
struct HeadSample {
  pa::Matrix<float> q, k, v;

  HeadSample rows(Index first, Index n) const {
    return {q.middleRows(first, n), k.middleRows(first, n), v.middleRows(first, n)};
  }

  /// Adds head h of keys of some tokens. The heads of queries that share it take turns: a query a token.
  void append(const pa::Heads<const float>& of_q, const pa::Heads<const float>& of_k,
              const pa::Heads<const float>& of_v, Index h) {
    const Index group = of_q.shape().heads / of_k.shape().heads;
    pa::Matrix<float> queries(of_q.shape().tokens, of_q.shape().dim);
    for (Index t = 0; t < queries.rows(); ++t) queries.row(t) = of_q(0, h * group + t % group).row(t);
    append(q, queries);
    append(k, of_k(0, h));
    append(v, of_v(0, h));
  }

 private:
  template <class Rows>
  static void append(pa::Matrix<float>& all, const Rows& rows) {
    const Index before = all.rows();
    all.conservativeResize(before + rows.rows(), rows.cols());
    all.bottomRows(rows.rows()) = rows;
  }
};

using ExactMemory = pa::KeyValueCache<pa::ExponentialKernel<float>>;

inline ExactMemory exact_memory(Index dv) { return {pa::ExponentialKernel<float>(), dv}; }

}  // namespace examples
