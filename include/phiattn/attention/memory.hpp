#pragma once

// What every memory of keys and values offers. Next: attention/state_scale.hpp.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/partial.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/output.hpp>

#include <concepts>
#include <limits>

namespace phiattn {

/// A memory of keys and values. Causal, streaming, parallel and distributed attention are all defined from
///
///     append(k, v [, log_weights])   add tokens; a key counts exp(log_weight) times, one of -inf does not exist
///     read(q [, first])              attend to all it holds; `first` is the position of the first query
///     read(q, out [, first])         the same into `out`
///     read_partial(q [, first])      the same as a Partial, to be combined with those of other memories
///     advance(q, k, v [, out])       a causal block: row t sees the past and the rows <= t
///     merge(other)                   union, associative
///
/// An empty one (size() == 0) is the identity of merge, and reading it gives 0. Shapes are q (n_q, d), k (n_k, d),
/// v (n_k, dv), log_weights (n_k), out (n_q, dv).
template <class M>
concept Memory = std::copyable<M> && detail::ComputeScalar<typename M::Scalar> &&
    requires(M memory, const M& other, const Input<typename M::Scalar>& x,
             const Output<typename M::Scalar>& out) {
  memory.append(x, x);
  memory.append(x, x, x);
  { other.read(x) } -> std::same_as<Matrix<typename M::Scalar>>;
  { other.read(x, Index{}) } -> std::same_as<Matrix<typename M::Scalar>>;
  { other.read(x, out, Index{}) } -> std::same_as<AttentionStatus>;
  { other.read_partial(x) } -> std::same_as<Partial<typename M::Scalar>>;
  { memory.advance(x, x, x) } -> std::same_as<Matrix<typename M::Scalar>>;
  { memory.advance(x, x, x, out) } -> std::same_as<AttentionStatus>;
  memory.merge(other);
  { other.size() } -> std::same_as<Index>;
  { other.value_dimension() } -> std::same_as<Index>;
};

namespace detail {

/// Every product and sum of the operator agrees on these.
template <class S>
void check_keys_and_values(const Input<S>& k, const Input<S>& v, Index d, Index dv) {
  check_equal("columns of k", k.cols(), "dimension d", d);
  check_equal("columns of v", v.cols(), "dimension dv", dv);
  check_equal("rows of v", v.rows(), "rows of k", k.rows());
}

template <class S>
void check_queries(const Input<S>& q, Index d) {
  check_equal("columns of q", q.cols(), "dimension d", d);
}

template <class S>
void check_log_weights(const Input<S>& log_weights, Index n_k) {
  check_vector("log_weights", log_weights.rows(), log_weights.cols(), "rows of k", n_k);
}

/// Loads the log-weights of a chunk of keys. A key of weight -inf does not exist, whatever it holds: its vectors
/// become 0.
template <class S>
void load_log_weights(const Input<S>& log_weights, Index first, MatrixRef<S> weights, MatrixRef<S> keys,
                      MatrixRef<S> values) {
  log_weights.as_column().load(first, S(1), weights);
  for (Index j = 0; j < weights.rows(); ++j) {
    if (weights(j, 0) != -std::numeric_limits<S>::infinity()) continue;
    keys.row(j).setZero();
    values.row(j).setZero();
  }
}

template <class S>
void check_output(const Output<S>& out, const Input<S>& q, Index dv) {
  out.check_shape(q.rows(), dv);
  out.check_apart_from("q", q);
}

template <class S>
void check_output(const Output<S>& out, const Input<S>& q, const Input<S>& k, const Input<S>& v) {
  check_output(out, q, v.cols());
  out.check_apart_from("k", k);
  out.check_apart_from("v", v);
}

}  // namespace detail
}  // namespace phiattn
