// How a similarity is run, for those who run one that cases.cpp does not.
#pragma once

#include <algorithm>

#include "golden/cases.hpp"

namespace golden {

template <class F>
auto empty_memory(const F& similarity, Index dv, const phiattn::AttentionOptions& options) {
  if constexpr (phiattn::Kernel<F>) {
    return phiattn::KeyValueCache<F>(similarity, dv, phiattn::detail::memory_options(options));
  } else {
    return phiattn::LinearState<F>(similarity, dv, phiattn::detail::memory_options(options));
  }
}

template <class F>
phiattn::Partial<double> Runs<F>::read_each_query(const F& similarity, const Case& given) {
  const Matrix<S> q = given.q.cast<S>(), k = given.k.cast<S>(), v = given.v.cast<S>();
  auto all = phiattn::Partial<double>::empty(q.rows(), v.cols());
  auto memory = empty_memory(similarity, v.cols(), given.options);
  if (!given.causal()) memory.append(k, v);
  for (Index t = 0; t < q.rows(); ++t) {
    if (given.causal()) memory.append(k.middleRows(t, 1), v.middleRows(t, 1));
    const phiattn::Partial<S> one = memory.read_partial(q.middleRows(t, 1));
    all.out.row(t) = one.out.template cast<double>();
    all.log_normaliser(t) = static_cast<double>(one.log_normaliser(0));
    all.sign(t) = static_cast<double>(one.sign(0));
  }
  return all;
}

template <class F>
void Runs<F>::check_out(const F& similarity, const Case& given, const Matrix<double>& expected,
                        double bound) {
  const Matrix<S> q = given.q.cast<S>(), k = given.k.cast<S>(), v = given.v.cast<S>();
  Matrix<double> out(q.rows(), v.cols());
  phiattn::attention(similarity, q, k, v, out, given.options);
  CHECK(distance(out, expected) <= bound);
  CHECK(distance(read_each_query(similarity, given).out, expected) <= bound);
  for (Index chunk = 1; chunk <= k.rows(); ++chunk) {
    CAPTURE(chunk);
    phiattn::AttentionOptions options = given.options;
    options.chunk = chunk;
    phiattn::attention(similarity, q, k, v, out, options);
    CHECK(distance(out, expected) <= bound);
    if (!given.causal()) continue;
    auto memory = empty_memory(similarity, v.cols(), given.options);
    for (Index first = 0; first < q.rows(); first += chunk) {
      const Index n = std::min(chunk, q.rows() - first);
      memory.advance(q.middleRows(first, n), k.middleRows(first, n), v.middleRows(first, n),
                     out.middleRows(first, n));
    }
    CHECK(distance(out, expected) <= bound);
  }
}

template <class F>
Matrix<double> Runs<F>::weights(const F& similarity, const Case& given) {
  const Matrix<S> q = given.q.cast<S>(), k = given.k.cast<S>();
  return phiattn::attention_weights(similarity, q, k, given.options).template cast<double>();
}

}  // namespace golden
