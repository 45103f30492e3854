#pragma once

// The one call over heads and batches, and over sequences packed one behind the other.

#include <phiattn/attention/attention.hpp>
#include <phiattn/attention/sequences.hpp>
#include <phiattn/core/heads.hpp>

#include <iterator>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// Shapes of a call: the heads of q are those of k times a whole number.
template <ComputeScalar S>
void check_heads(const HeadsInput<S>& q, const HeadsInput<S>& k, const HeadsInput<S>& v,
                 const HeadsOutput<S>& out) {
  const HeadsShape of_q = q.shape(), of_k = k.shape(), of_v = v.shape(), of_out = out.shape();
  check_equal("batch of k", of_k.batch, "batch of q", of_q.batch);
  check_equal("batch of v", of_v.batch, "batch of q", of_q.batch);
  check_equal("batch of out", of_out.batch, "batch of q", of_q.batch);
  if (of_k.heads == 0) check_equal("heads of q", of_q.heads, "heads of k", 0);
  if (of_k.heads > 0)
    check_equal("remainder of the heads of q over those of k", of_q.heads % of_k.heads, "none", 0);
  check_equal("heads of v", of_v.heads, "heads of k", of_k.heads);
  check_equal("heads of out", of_out.heads, "heads of q", of_q.heads);
  check_equal("dim of q", of_q.dim, "dim of k", of_k.dim);
  check_equal("dim of out", of_out.dim, "dim of v", of_v.dim);
  check_equal("tokens of v", of_v.tokens, "tokens of k", of_k.tokens);
  check_equal("tokens of out", of_out.tokens, "tokens of q", of_q.tokens);
  out.check_places();
  out.check_apart_from("q", q);
  out.check_apart_from("k", k);
  out.check_apart_from("v", v);
}

/// Calls attend(head of q, its queries, keys, out) for all heads of k, or, if each has a similarity of its
/// own, for all heads of q.
template <ComputeScalar S, class Attend>
AttentionStatus for_each_head(const HeadsInput<S>& q, const HeadsInput<S>& k, const HeadsInput<S>& v,
                              const HeadsOutput<S>& out, bool together, const Attend& attend) {
  AttentionStatus status;
  const Index heads = q.shape().heads, kv_heads = k.shape().heads;
  const Index group = kv_heads > 0 ? heads / kv_heads : 0, step = together ? group : 1;
  for (Index b = 0; b < q.shape().batch; ++b) {
    for (Index h = 0; h < heads; h += step) {
      const Index kv = h / group;
      status.add(attend(h, q.group(b, h, step), CallKeys<S>{k.head(b, kv), v.head(b, kv), {}},
                        out.group(b, h, step)),
                 (b * heads + h) * q.shape().tokens);
    }
  }
  return status;
}

template <Attends F>
void check_sequences(const F& similarity, const Sequences& sequences, Index n_q, Index n_k,
                     const char* columns, Index d, Index dv, const AttentionOptions& options) {
  sequences.check(n_q, n_k);
  for (Index s = 0; s < sequences.size(); ++s) {
    check_similarity(similarity, sequences.queries(s).n, sequences.keys(s).n, columns, d, dv, options);
  }
}

template <Attends F, class S = typename F::Scalar>
AttentionStatus for_each_sequence(const F& similarity, const Sequences& sequences,
                                  const InputGroup<typename F::Scalar>& q,
                                  const CallKeys<typename F::Scalar>& keys,
                                  const OutputGroup<typename F::Scalar>& out,
                                  const AttentionOptions& options) {
  AttentionStatus status;
  for (Index s = 0; s < sequences.size(); ++s) {
    const RowRange of_q = sequences.queries(s), of_k = sequences.keys(s);
    const GroupAttention<F> attend(similarity, of_q.n, of_k.n, keys.v.cols(), options);
    status.add(
        attend(q.slice(of_q.first, of_q.n), keys.slice(of_k.first, of_k.n), out.slice(of_q.first, of_q.n)),
        0);
  }
  return status;
}

template <class R>
concept RangeOfSimilarities = requires(const R& range) {
  std::size(range);
  std::begin(range)[0];
  requires Attends<ElementOfRange<R>>;
};
template <class R>
using ScalarOfEach = typename ElementOfRange<R>::Scalar;

}  // namespace detail

/// Attention of every head of every sequence: heads [h g, (h + 1) g) of q share head h of k and v, g = heads of q / heads
/// of k. `similarity` as in the call over matrices, one for all. No head is copied: keys and values are read where they
/// lie, and queries that share them are taken together.
/// @return the rows whose normaliser is no positive number, numbered as (batch, heads, tokens) of q
/// @throws std::invalid_argument  as the call over matrices, before anything is written
template <detail::Attends F>
AttentionStatus attention(const F& similarity, const HeadsInput<typename F::Scalar>& q,
                          const HeadsInput<typename F::Scalar>& k, const HeadsInput<typename F::Scalar>& v,
                          const HeadsOutput<typename F::Scalar>& out, const AttentionOptions& options = {}) {
  detail::check_heads(q, k, v, out);
  detail::check_similarity(similarity, q.shape().tokens, k.shape().tokens, "dim", q.shape().dim,
                           v.shape().dim, options);
  const detail::GroupAttention<F> attend(similarity, q.shape().tokens, k.shape().tokens, v.shape().dim,
                                         options);
  return detail::for_each_head<typename F::Scalar>(
      q, k, v, out, detail::Tagged<F> || detail::GroupMemory<F>,
      [&](Index, const auto& of_q, const auto& keys, const auto& of_out) {
        return attend(of_q, keys, of_out);
      });
}

/// The same with a similarity of its own for every head of q.
template <detail::RangeOfSimilarities R>
AttentionStatus attention(const R& similarities, const HeadsInput<detail::ScalarOfEach<R>>& q,
                          const HeadsInput<detail::ScalarOfEach<R>>& k,
                          const HeadsInput<detail::ScalarOfEach<R>>& v,
                          const HeadsOutput<detail::ScalarOfEach<R>>& out,
                          const AttentionOptions& options = {}) {
  using F = detail::ElementOfRange<R>;
  detail::check_heads(q, k, v, out);
  detail::check_equal("number of similarities", static_cast<Index>(std::size(similarities)), "heads of q",
                      q.shape().heads);
  for (const F& similarity : similarities) {
    detail::check_similarity(similarity, q.shape().tokens, k.shape().tokens, "dim", q.shape().dim,
                             v.shape().dim, options);
  }
  return detail::for_each_head<typename F::Scalar>(
      q, k, v, out, false, [&](Index h, const auto& of_q, const auto& keys, const auto& of_out) {
        const F& similarity = std::begin(similarities)[h];
        return detail::GroupAttention<F>(similarity, q.shape().tokens, k.shape().tokens, v.shape().dim,
                                         options)(of_q, keys, of_out);
      });
}

/// Attention of sequences packed one behind the other: no token sees another sequence's, and positions count from each
/// start. Options hold for each sequence by itself.
/// @throws std::invalid_argument  too if the offsets do not end with the rows of q and k
template <detail::Attends F>
AttentionStatus attention(const F& similarity, const Input<typename F::Scalar>& q,
                          const KeyInput<typename F::Scalar>& k, const Input<typename F::Scalar>& v,
                          const Output<typename F::Scalar>& out, const AttentionOptions& options,
                          const Sequences& sequences) {
  detail::check_sequences(similarity, sequences, q.rows(), k.rows(), "columns", q.cols(), v.cols(), options);
  detail::check_equal("columns of q", q.cols(), "columns of k", k.cols());
  detail::check_keys_and_values(k, v, k.cols(), v.cols());
  if (const auto& w = k.log_weights())
    detail::check_vector("log_weights", w.rows(), w.cols(), "rows of k", k.rows());
  detail::check_output(out, q, k, v);
  out.check_apart_from("log_weights", k.log_weights());
  return out.fill_apart([&](const Output<typename F::Scalar>& apart) {
    return detail::for_each_sequence(similarity, sequences, q, {k, v, k.log_weights()}, apart, options);
  });
}

/// The same as a new (n_q, dv) matrix.
template <detail::Attends F>
Matrix<typename F::Scalar> attention(const F& similarity, const Input<typename F::Scalar>& q,
                                     const KeyInput<typename F::Scalar>& k,
                                     const Input<typename F::Scalar>& v, const AttentionOptions& options,
                                     const Sequences& sequences) {
  Matrix<typename F::Scalar> out(q.rows(), v.cols());
  attention(similarity, q, k, v, Output<typename F::Scalar>(out), options, sequences);
  return out;
}

/// The same over heads, whose batch is 1: the tokens of all sequences are one behind the other.
template <detail::Attends F>
AttentionStatus attention(const F& similarity, const HeadsInput<typename F::Scalar>& q,
                          const HeadsInput<typename F::Scalar>& k, const HeadsInput<typename F::Scalar>& v,
                          const HeadsOutput<typename F::Scalar>& out, const AttentionOptions& options,
                          const Sequences& sequences) {
  detail::check_heads(q, k, v, out);
  detail::check_equal("batch of q", q.shape().batch, "one, of packed sequences", 1);
  detail::check_sequences(similarity, sequences, q.shape().tokens, k.shape().tokens, "dim", q.shape().dim,
                          v.shape().dim, options);
  return detail::for_each_head<typename F::Scalar>(
      q, k, v, out, detail::Tagged<F> || detail::GroupMemory<F>,
      [&](Index, const auto& of_q, const auto& keys, const auto& of_out) {
        return detail::for_each_sequence(similarity, sequences, of_q, keys, of_out, options);
      });
}

}  // namespace phiattn::inline PHIATTN_ABI
