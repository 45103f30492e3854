#pragma once

// The one entry point.

#include <phiattn/attention/attend.hpp>

#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

template <Attends F>
void check_call(const F& similarity, const Input<typename F::Scalar>& q,
                const KeyInput<typename F::Scalar>& k, const Input<typename F::Scalar>& v,
                const AttentionOptions& options) {
  check_equal("columns of q", q.cols(), "columns of k", k.cols());
  check_keys_and_values(k, v, k.cols(), v.cols());
  if (const auto& w = k.log_weights()) check_vector("log_weights", w.rows(), w.cols(), "rows of k", k.rows());
  check_similarity(similarity, q.rows(), k.rows(), "columns", q.cols(), v.cols(), options);
}

}  // namespace detail

/// Attention,
///
///     out_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j),      (n_q, d) (n_k, d) (n_k, dv) -> (n_q, dv)
///
/// over all keys or, when causal, over the keys j <= i + query_offset. The similarity is a kernel (exact, O(n_q n_k))
/// or a feature map (linear attention, O(n)), or in their place an empty memory, which then owns the scale. A row
/// that sees no key gets 0.
/// @param k    keys, or weighted(k, log_weights)
/// @param out  any writable (n_q, dv) expression, apart from the inputs; temporaries like x.topRows(n) included. One
///             without direct access, such as x.colwise().reverse(), is written at the end, from a matrix beside it
/// @return the rows whose normaliser vanished or was negative (signed similarities only)
/// @throws std::invalid_argument  on shapes that do not fit, shared memory and options out of range, before anything
///                                is written
/// Working memory does not grow with n_q or n_k, but for one number a key where they have log-weights.
template <detail::Attends F>
AttentionStatus attention(const F& similarity, const Input<typename F::Scalar>& q,
                          const KeyInput<typename F::Scalar>& k, const Input<typename F::Scalar>& v,
                          const Output<typename F::Scalar>& out, const AttentionOptions& options = {}) {
  detail::check_call(similarity, q, k, v, options);
  detail::check_output(out, q, k, v);
  out.check_apart_from("log_weights", k.log_weights());
  const detail::GroupAttention<F> attend(similarity, q.rows(), k.rows(), v.cols(), options);
  return out.fill_apart([&](const auto& apart) {
    return attend(q, {k, v, k.log_weights()}, detail::OutputGroup<typename F::Scalar>(apart));
  });
}

/// The same with a mask of one's own, which a kernel can have any of: row i sees the keys mask.keys(i, n_k). A feature map
/// takes a PrefixMask that shows no row less than the one before, as a running sum forgets no key.
/// @param options  scale and chunk; causality, alignment and query_offset are the mask's matter, and are refused
template <detail::Tagged F, Mask M>
AttentionStatus attention(const F& similarity, const Input<typename F::Scalar>& q,
                          const KeyInput<typename F::Scalar>& k, const Input<typename F::Scalar>& v,
                          const Output<typename F::Scalar>& out, const M& mask,
                          const AttentionOptions& options = {}) {
  using S = typename F::Scalar;
  static_assert(Kernel<F> || PrefixMask<M>,
                "phiattn: a feature map takes a PrefixMask: a running sum hides no key that it has shown");
  detail::check_call(similarity, q, k, v, options);
  detail::check_output(out, q, k, v);
  out.check_apart_from("log_weights", k.log_weights());
  if (options.causality != Causality::none || options.query_offset) {
    detail::fail_argument("causality, query_offset: the mask says which keys a row sees");
  }
  if constexpr (FeatureMap<F>) detail::check_prefix(mask, q.rows(), k.rows());
  return out.fill_apart([&](const Output<S>& apart) {
    const detail::OutputGroup<S> group(apart);
    if constexpr (Kernel<F>) {
      return detail::attend_tiled<S>(detail::KernelRef<S>::of(similarity), similarity.default_scale(q.cols()),
                                     detail::kScaleOnQueries<F>, q, {k, v, k.log_weights()},
                                     detail::mask_ref(mask), options,
                                     detail::RowResults<S>(group, detail::sink_of(similarity)));
    } else {
      LinearState<F> state(similarity, v.cols(), detail::memory_options(options));
      return detail::attend_masked(state, q, {k, v, k.log_weights()}, group, mask);
    }
  });
}

/// The same as a new (n_q, dv) matrix.
template <detail::Attends F>
Matrix<typename F::Scalar> attention(const F& similarity, const Input<typename F::Scalar>& q,
                                     const KeyInput<typename F::Scalar>& k,
                                     const Input<typename F::Scalar>& v,
                                     const AttentionOptions& options = {}) {
  Matrix<typename F::Scalar> out(q.rows(), v.cols());
  attention(similarity, q, k, v, Output<typename F::Scalar>(out), options);
  return out;
}

/// The same with what a backward pass needs of it: `partial` becomes out, log_normaliser and sign, of the shapes due. With
/// an attention sink the normaliser contains it.
template <detail::Attends F>
AttentionStatus attention(const F& similarity, const Input<typename F::Scalar>& q,
                          const KeyInput<typename F::Scalar>& k, const Input<typename F::Scalar>& v,
                          Partial<typename F::Scalar>& partial, const AttentionOptions& options = {}) {
  using S = typename F::Scalar;
  detail::check_call(similarity, q, k, v, options);
  auto made = Partial<S>::empty(q.rows(), v.cols());
  const detail::GroupAttention<F> attend(similarity, q.rows(), k.rows(), v.cols(), options);
  const AttentionStatus status = attend(q, {k, v, k.log_weights()}, detail::PartialRows<S>{&made});
  partial = std::move(made);
  return status;
}

/// The matrix of weights sim(q_i, k_j) / sum_j' sim(q_i, k_j') itself, (n_q, n_k).
/// Cost: of a kernel 2 n_q n_k d flops; of a feature map that of attention to the unit vectors, dv = n_k.
template <detail::Tagged F>
Matrix<typename F::Scalar> attention_weights(const F& similarity, const Input<typename F::Scalar>& q,
                                             const KeyInput<typename F::Scalar>& k,
                                             const AttentionOptions& options = {}) {
  using S = typename F::Scalar;
  if constexpr (Kernel<F>) {
    const Matrix<S> nothing(k.rows(), 0);
    detail::check_call(similarity, q, k, nothing, options);
    Matrix<S> weights(q.rows(), k.rows());
    const detail::Sight sight(options, q.rows(), k.rows());
    detail::in_tiles<S>(
        detail::KernelRef<S>::of(similarity), similarity.default_scale(q.cols()), detail::kScaleOnQueries<F>,
        q.rows(), {k, detail::InputView<S>(nothing), k.log_weights()},
        sight.mask(detail::has_whole_mask(similarity)), options,
        [&](const auto& tiled, S factor) { tiled.weigh(q, factor, detail::sink_of(similarity), weights); });
    return weights;
  } else {
    return attention(similarity, q, k, Matrix<S>::Identity(k.rows(), k.rows()), options);
  }
}

}  // namespace phiattn::inline PHIATTN_ABI
