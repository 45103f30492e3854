#pragma once

// What every memory of keys and values offers, and what it is made from.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/padding.hpp>
#include <phiattn/attention/partial.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/tokens.hpp>
#include <phiattn/core/output.hpp>

#include <concepts>
#include <optional>

namespace phiattn::inline PHIATTN_ABI {

/// Whether the order of the tokens matters to a memory: merge is commutative, or what is merged came later.
enum class Order { any, sequence };

namespace detail {

/// What all parts of a memory, and all memories that merge, must agree on. The dimension of q and k and the scale are
/// settled by the constructor or by the first token; until then there are none.
template <class M>
concept MemoryFacts = std::copyable<M> && ComputeScalar<typename M::Scalar> && requires(const M& memory) {
  { memory.size() } -> std::same_as<Index>;
  { memory.value_dimension() } -> std::same_as<Index>;
  { memory.dimension() } -> std::convertible_to<std::optional<Index>>;
  { memory.scale() } -> std::convertible_to<std::optional<double>>;
  { M::kOrder } -> std::convertible_to<Order>;
};

}  // namespace detail

/// A memory of keys and values. Causal, streaming, parallel and distributed attention are all defined from
///
///     append(k, v [, log_weights | options])   add tokens; see TokenOptions
///     read(q [, first])                        attend to all it holds; `first` is the position of the first query
///     read(q, out [, first])                   the same into `out`
///     read_partial(q [, first])                the same as a Partial, to be combined with those of other memories
///     advance(q, k, v [, out] [, options])     a causal block: row t sees the past and the rows <= t
///     merge(other)                             union, associative
///
/// An empty one (size() == 0) is the identity of merge, and reading it gives 0. Shapes are q (n_q, d), k (n_k, d),
/// v (n_k, dv), log_weights (n_k), out (n_q, dv).
template <class M>
concept Memory = detail::MemoryFacts<M> &&
    requires(M memory, const M& other, const Input<typename M::Scalar>& x,
             const Output<typename M::Scalar>& out, const TokenOptions<typename M::Scalar>& options) {
  memory.append(x, x);
  memory.append(x, x, x);
  memory.append(x, x, options);
  { other.read(x) } -> std::same_as<Matrix<typename M::Scalar>>;
  { other.read(x, Index{}) } -> std::same_as<Matrix<typename M::Scalar>>;
  { other.read(x, out, Index{}) } -> std::same_as<AttentionStatus>;
  { other.read_partial(x) } -> std::same_as<Partial<typename M::Scalar>>;
  { memory.advance(x, x, x) } -> std::same_as<Matrix<typename M::Scalar>>;
  { memory.advance(x, x, x, out) } -> std::same_as<AttentionStatus>;
  { memory.advance(x, x, x, out, options) } -> std::same_as<AttentionStatus>;
  memory.merge(other);
};

/// What MemoryBase makes a memory of, block by block. All shapes have been checked, and everything is in the compute
/// type and times sqrt(scale). What was held inside the values seen is reported in clamped_rows.
///
///     append_block(tokens)                  add them
///     read_block(queries, out) const        attend to all it holds
///     advance_block(queries, tokens, out)   row t sees the past and the tokens <= t
///     check_same(other) const               throw if `other` differs in anything else that the sum depends on
///     absorb(other)                         union; `other` agrees in dimension, dv and scale, and has passed the check
template <class M>
concept BlockModel = detail::MemoryFacts<M> &&
    requires(M memory, const M& other, const Queries<typename M::Scalar>& queries,
             const Tokens<typename M::Scalar>& tokens, const RowSums<typename M::Scalar>& out) {
  memory.append_block(tokens);
  { other.read_block(queries, out) } -> std::same_as<AttentionStatus>;
  { memory.advance_block(queries, tokens, out) } -> std::same_as<AttentionStatus>;
  other.check_same(other);
  memory.absorb(other);
  memory.settle(Index{});
  { other.block_rows() } -> std::same_as<Index>;
  { other.takes_groups() } -> std::same_as<bool>;
};

/// A model that can start anew, as all of the library's own.
template <class M>
concept ClearableModel = requires(M model) {
  model.forget_all();
};

/// A memory for which what it keeps of a key depends on where the query stands: bidirectional attention looks at both
/// sides of each query and does not append all first.
template <class M>
concept SeesBothSides = Memory<M> &&
    requires(const M& memory, const Input<typename M::Scalar>& x, const Output<typename M::Scalar>& out) {
  { memory.attend_around(x, x, x, out, Index{}) } -> std::same_as<AttentionStatus>;
};

/// The same for keys with log-weights.
template <class M>
concept WeighsBothSides = SeesBothSides<M> &&
    requires(const M& memory, const Input<typename M::Scalar>& x, const Output<typename M::Scalar>& out) {
  { memory.attend_around(x, x, x, out, Index{}, x) } -> std::same_as<AttentionStatus>;
};

namespace detail {

/// A model that takes a single token for less than a block costs, if it can: what it says is whether it did, and else
/// nothing has changed.
template <class M>
concept StepModel = requires(M model, const InputGroup<typename M::Scalar>& q,
                             const InputView<typename M::Scalar>& x, typename M::Scalar root_scale,
                             const OutputGroup<typename M::Scalar>& out) {
  { model.advance_step(q, x, x, root_scale, out) } -> std::same_as<bool>;
};

/// A memory that queries of several heads can read and advance together, as all of the library's own making.
template <class M>
concept GroupMemory = Memory<M> &&
    requires(M memory, const M& other, const InputGroup<typename M::Scalar>& q,
             const Input<typename M::Scalar>& x, const OutputGroup<typename M::Scalar>& out,
             const TokenOptions<typename M::Scalar>& options) {
  { other.read_heads(q, out, Index{}) } -> std::same_as<AttentionStatus>;
  { memory.advance_heads(q, x, x, out, options) } -> std::same_as<AttentionStatus>;
};

/// Keys, values and, if there are any, log-weights of a call.
template <class S>
struct CallKeys {
  InputView<S> k, v, log_weights;

  CallKeys slice(Index first, Index n) const {
    return {k.slice(first, n), v.slice(first, n),
            log_weights ? log_weights.as_column().slice(first, n) : InputView<S>()};
  }
};

template <Memory M>
void append_keys(M& memory, const CallKeys<typename M::Scalar>& keys) {
  if (keys.log_weights) {
    memory.append(keys.k, keys.v, keys.log_weights);
  } else {
    memory.append(keys.k, keys.v);
  }
}

/// A memory of one's own making has one head, and its status counts from its own first row.
template <Memory M>
AttentionStatus read_group(const M& memory, const InputGroup<typename M::Scalar>& q,
                           const OutputGroup<typename M::Scalar>& out, Index first) {
  if constexpr (GroupMemory<M>) {
    return memory.read_heads(q, out, first);
  } else {
    AttentionStatus status;
    status.add(memory.read(q.head(0), out.head(0), first), out.row_number(0, 0));
    return status;
  }
}
template <Memory M>
AttentionStatus advance_group(M& memory, const InputGroup<typename M::Scalar>& q,
                              const CallKeys<typename M::Scalar>& keys,
                              const OutputGroup<typename M::Scalar>& out) {
  if constexpr (GroupMemory<M>) {
    return memory.advance_heads(q, keys.k, keys.v, out, {.log_weights = keys.log_weights});
  } else {
    AttentionStatus status;
    status.add(memory.advance(q.head(0), keys.k, keys.v, out.head(0), {.log_weights = keys.log_weights}),
               out.row_number(0, 0));
    return status;
  }
}

/// The same into a partial, of which memories of one's own making know nothing.
template <Memory M>
AttentionStatus read_group(const M& memory, const InputGroup<typename M::Scalar>& q,
                           const PartialRows<typename M::Scalar>& out, Index first) {
  return memory.read_heads(q, out, first);
}
template <Memory M>
AttentionStatus advance_group(M& memory, const InputGroup<typename M::Scalar>& q,
                              const CallKeys<typename M::Scalar>& keys,
                              const PartialRows<typename M::Scalar>& out) {
  return memory.advance_heads(q, keys.k, keys.v, out, {.log_weights = keys.log_weights});
}

/// Reads all queries, query t at the last key that exists at or before row t + position.
template <Memory M, class Out>
AttentionStatus read_beside(const M& memory, const InputGroup<typename M::Scalar>& q, const Padding& padding,
                            const Out& out, Index position) {
  AttentionStatus status;
  for (Index t = 0, n; t < q.rows(); t += n) {
    const Index first = padding.of_query(t + position);
    for (n = 1; t + n < q.rows() && padding.of_query(t + n + position) == first + n;) ++n;
    status.add(read_group(memory, q.slice(t, n), out.slice(t, n), first), 0);
  }
  return status;
}

inline Index checked_dv(Index dv) {
  check_at_least("dv", dv, 0);
  return dv;
}

/// Every product and sum of the operator agrees on these.
template <class S>
void check_keys_and_values(const InputView<S>& k, const InputView<S>& v, Index d, Index dv) {
  check_equal("columns of k", k.cols(), "dimension d", d);
  check_equal("columns of v", v.cols(), "dimension dv", dv);
  check_equal("rows of v", v.rows(), "rows of k", k.rows());
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
}  // namespace phiattn::inline PHIATTN_ABI
