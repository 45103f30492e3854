// Calls over kernels with modified scores and keys that may not exist, against their formula.

#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include <limits>
#include <optional>

#include "call_draws.hpp"
#include "score_draws.hpp"

using namespace fuzz;
using laws::Expected;
using laws::Problem;
using phiattn::Vector;

namespace {

template <class S>
void hide(Problem<S>& problem, Index j) {
  problem.k.row(j).setConstant(std::numeric_limits<S>::quiet_NaN());
  problem.v.row(j).setConstant(std::numeric_limits<S>::infinity());
}

/// A key that holds no numbers reaches the rows that see it, and no others.
template <class K, class S>
void check_hidden(Bytes& bytes, const Modified<K>& modified, Problem<S> problem, Expected due) {
  if (problem.k.rows() == 0 || problem.v.cols() == 0 || problem.log_weights.size() > 0) return;
  const Index j = bytes.between(0, problem.k.rows() - 1);
  hide(problem, j);
  const auto& [q, k, v, options, none] = problem;
  const Matrix<S> out = phiattn::attention(modified.kernel, q, k, v, options);
  for (Index i = 0; i < q.rows(); ++i) {
    if (std::abs(due.weights(i, j)) > 1e-6L)
      require(!out.row(i).allFinite(), "scores", "what is seen counts");
  }
  std::erase_if(due.rows, [&](Index i) { return due.weights(i, j) != 0; });
  require_close(laws::error(out, due), "scores", "what is hidden does not exist");
}

/// The cache of a modified kernel, filled in blocks, against the one causal call.
template <class K, class S>
void check_cache(Bytes& bytes, const Modified<K>& modified, const Problem<S>& problem, const Expected& due) {
  const auto& [q, k, v, options, none] = problem;
  const Index n = q.rows();
  const bool is_prompt = options.causality == Causality::causal && n == k.rows() &&
                         options.query_offset.value_or(0) == 0 && !modified.meaning.prefix;
  if (!is_prompt || problem.log_weights.size() > 0) return;
  phiattn::KeyValueCache<phiattn::ModifiedKernel<K>> cache(modified.kernel, v.cols(),
                                                           {.scale = options.scale, .chunk = options.chunk});
  Matrix<S> out(n, v.cols());
  for (Index t = 0, rows; t < n; t += rows) {
    rows = std::min(bytes.between(1, 8), n - t);
    cache.advance(q.middleRows(t, rows), k.middleRows(t, rows), v.middleRows(t, rows),
                  out.middleRows(t, rows));
  }
  require_close(laws::error(out, due), "scores", "a cache is the one causal call");
}

template <class K>
void check(Bytes& bytes, const K& kernel, const oracle::Similarity& formula) {
  using S = typename K::Scalar;
  const Index n_q = bytes.between(0, 20), n_k = bytes.flag() ? n_q : bytes.between(0, 20);
  const Index d = bytes.between(0, 6), dv = bytes.between(0, 4);
  constexpr double kLargest = 6;  // so that no weight of what is seen is 0 in long double
  Problem<S> problem{draw_tokens<S>(bytes, n_q, d, kLargest), draw_tokens<S>(bytes, n_k, d, kLargest),
                     bytes.gaussian<S>(n_k, dv), draw_options(bytes, n_q, n_k),
                     draw_log_weights<S>(bytes, n_k, {2.0, 100.0})};
  const bool aligns = problem.options.causality == Causality::causal && !problem.options.query_offset;
  if (aligns && bytes.flag()) problem.options.alignment = phiattn::Alignment::first;
  const Modified<K> modified = draw_modified(bytes, kernel, n_q, n_k);
  const Expected due = laws::expected(formula, modified.meaning, problem);
  check_hidden(bytes, modified, problem, due);
  check_cache(bytes, modified, problem, due);

  const Vector<S>& log_weights = problem.log_weights;
  for (Index j = 0; j < log_weights.size(); ++j) {
    if (log_weights(j) == -std::numeric_limits<S>::infinity()) hide(problem, j);
  }
  phiattn::Partial<S> partial;
  Matrix<S> out, weights;
  const auto call = [&](const phiattn::KeyInput<S>& keys) {
    out = phiattn::attention(modified.kernel, problem.q, keys, problem.v, problem.options);
    phiattn::attention(modified.kernel, problem.q, keys, problem.v, partial, problem.options);
    weights = phiattn::attention_weights(modified.kernel, problem.q, keys, problem.options);
  };
  if (log_weights.size() > 0) {
    call(phiattn::weighted(problem.k, log_weights));
  } else {
    call(problem.k);
  }
  require_close(laws::error(out, due), "scores", "the result is its formula");
  require_close(laws::error(partial, due), "scores", "the partial result is its formula");
  require_close(laws::weight_error(weights, due), "scores", "the weights are their formula");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  switch (bytes.between(0, 3)) {
    case 0:
      check(bytes, phiattn::ExponentialKernel<double>(), oracle::exponential());
      break;
    case 1: {
      const Index degree = bytes.between(1, 3);
      check(bytes, phiattn::PolynomialKernel<float>::taylor(degree), oracle::taylor(degree));
      break;
    }
    default:
      check(bytes, phiattn::ExponentialKernel<float>(), oracle::exponential());
  }
  return 0;
}
