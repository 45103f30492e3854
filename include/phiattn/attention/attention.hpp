#pragma once

// The one entry point.

#include <phiattn/attention/any_memory.hpp>
#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/attention/memory.hpp>
#include <phiattn/masks/mask.hpp>

#include <algorithm>
#include <concepts>
#include <optional>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// With an empty memory; causal attention advances.
template <Memory M>
AttentionStatus attend(M& memory, const InputGroup<typename M::Scalar>& q, const Input<typename M::Scalar>& k,
                       const Input<typename M::Scalar>& v, const OutputGroup<typename M::Scalar>& out,
                       const AttentionOptions& options) {
  const Index n_q = q.rows();
  const Index n_k = k.rows();
  if (options.causality == Causality::none) {
    return attend_all(memory, q, k, v, out, options.query_offset.value_or(0));
  }
  // Query i stands beside key i + offset: some queries come before all keys, some keys before all queries, and what
  // follows the pairs sees every key that is left in sight. Those that stand beside no key have a position all the same.
  const Index offset = causal_offset(options, n_q, n_k);
  const Index position = countable(options.query_offset.value_or(n_k - n_q));
  const Index before = std::clamp<Index>(-offset, 0, n_q);
  const Index past = std::clamp<Index>(offset, 0, n_k);
  const Index pairs = (std::min)(n_q - before, n_k - past);
  const Index after = before + pairs;
  AttentionStatus status = read_group(memory, q.slice(0, before), out.slice(0, before), position);
  memory.append(k.slice(0, past), v.slice(0, past));
  status.add(advance_group(memory, q.slice(before, pairs), k.slice(past, pairs), v.slice(past, pairs),
                           out.slice(before, pairs)),
             0);
  status.add(read_group(memory, q.slice(after, n_q - after), out.slice(after, n_q - after), position + after),
             0);
  return status;
}

/// The mask of a call without one of its own.
class Sight {
 public:
  Sight(const AttentionOptions& options, Index n_q, Index n_k)
      : causal_(options.causality == Causality::causal), mask_{causal_offset(options, n_q, n_k)} {}
  MaskRef mask() const { return causal_ ? mask_ref(mask_) : mask_ref(all_); }

 private:
  bool causal_;
  CausalMask mask_;
  AllKeys all_;
};

template <Kernel K>
AttentionStatus attend_tiled(const K& kernel, const InputGroup<typename K::Scalar>& q,
                             const Input<typename K::Scalar>& k, const Input<typename K::Scalar>& v,
                             const OutputGroup<typename K::Scalar>& out, const MaskRef& mask,
                             const AttentionOptions& options) {
  using S = typename K::Scalar;
  const S factor = root_scale<S>(options, kernel.default_scale(k.cols()));
  const TiledAttention<S> tiled(KernelRef<S>::of(kernel), {k, v, nullptr, factor}, mask,
                                checked_chunk(options));
  return tiled.attend(q, factor, RowResults<S>(out));
}

/// A similarity fails its own concept by name.
template <class F>
consteval void require_similarity() {
  using Kind = typename F::Kind;
  if constexpr (std::same_as<Kind, LogKernelTag>) {
    static_assert(LogKernel<F>,
                  "phiattn: the type says that it is a LogKernel, but does not model that concept");
  } else if constexpr (std::same_as<Kind, SignedKernelTag>) {
    static_assert(SignedKernel<F>,
                  "phiattn: the type says that it is a SignedKernel, but does not model that concept");
  } else if constexpr (std::same_as<Kind, LogFeatureMapTag>) {
    static_assert(LogFeatureMap<F>,
                  "phiattn: the type says that it is a LogFeatureMap, but does not model that concept");
  } else {
    static_assert(SignedFeatureMap<F>,
                  "phiattn: the type says that it is a SignedFeatureMap, but does not model that concept");
  }
}

template <class F>
concept Tagged = requires {
  typename F::Kind;
};

}  // namespace detail

/// Attention,
///
///     out_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j),      (n_q, d) (n_k, d) (n_k, dv) -> (n_q, dv)
///
/// over all keys or, when causal, over the keys j <= i + query_offset. The similarity is a kernel (exact, O(n_q n_k))
/// or a feature map (linear attention, O(n)), or in their place an empty memory, which then owns the scale. A row
/// that sees no key gets 0.
/// @param out  any writable (n_q, dv) expression, apart from the inputs; temporaries like x.topRows(n) included. One
///             without direct access, such as x.colwise().reverse(), is written at the end, from a matrix beside it
/// @return the rows whose normaliser vanished or was negative (signed similarities only)
/// @throws std::invalid_argument  on shapes that do not fit, shared memory and options out of range, before anything
///                                is written
/// Working memory does not grow with n_q or n_k.
template <detail::Tagged F>
AttentionStatus attention(const F& similarity, const Input<typename F::Scalar>& q,
                          const Input<typename F::Scalar>& k, const Input<typename F::Scalar>& v,
                          const Output<typename F::Scalar>& out, const AttentionOptions& options = {}) {
  detail::require_similarity<F>();
  detail::check_equal("columns of q", q.cols(), "columns of k", k.cols());
  detail::check_keys_and_values(k, v, k.cols(), v.cols());
  detail::check_output(out, q, k, v);
  if constexpr (FeatureMap<F>) {
    detail::check_equal("columns of q", q.cols(), "dimension of the feature map", similarity.dimension());
    LinearState<F> state(similarity, v.cols(), options);
    return out.fill_apart([&](const auto& apart) { return detail::attend(state, q, k, v, apart, options); });
  } else {
    const detail::Sight sight(options, q.rows(), k.rows());
    return out.fill_apart([&](const auto& apart) {
      return detail::attend_tiled(similarity, q, k, v, apart, sight.mask(), options);
    });
  }
}

/// The same with a mask of one's own, which a kernel can have any of: row i sees the keys mask.keys(i, n_k).
/// @param options  scale and chunk; causality and query_offset are the mask's matter, and are refused
template <Kernel K, Mask M>
AttentionStatus attention(const K& kernel, const Input<typename K::Scalar>& q,
                          const Input<typename K::Scalar>& k, const Input<typename K::Scalar>& v,
                          const Output<typename K::Scalar>& out, const M& mask,
                          const AttentionOptions& options = {}) {
  detail::require_similarity<K>();
  detail::check_equal("columns of q", q.cols(), "columns of k", k.cols());
  detail::check_keys_and_values(k, v, k.cols(), v.cols());
  detail::check_output(out, q, k, v);
  if (options.causality != Causality::none || options.query_offset) {
    detail::fail_argument("causality, query_offset: the mask says which keys a row sees");
  }
  return out.fill_apart([&](const auto& apart) {
    return detail::attend_tiled(kernel, q, k, v, apart, detail::mask_ref(mask), options);
  });
}

template <Memory M>
requires(!detail::Tagged<M>) AttentionStatus
    attention(const M& memory, const Input<typename M::Scalar>& q, const Input<typename M::Scalar>& k,
              const Input<typename M::Scalar>& v, const Output<typename M::Scalar>& out,
              const AttentionOptions& options = {}) {
  detail::check_equal("size of the memory", memory.size(), "an empty one", 0);
  if (options.scale) detail::fail_argument("scale: it belongs to the memory; construct the memory with it");
  detail::check_equal("columns of q", q.cols(), "columns of k", k.cols());
  detail::check_keys_and_values(k, v, std::optional<Index>(memory.dimension()).value_or(k.cols()),
                                memory.value_dimension());
  detail::check_output(out, q, k, v);
  M filled = memory;
  return out.fill_apart([&](const auto& apart) { return detail::attend(filled, q, k, v, apart, options); });
}

/// The same as a new (n_q, dv) matrix.
template <class F>
requires detail::Tagged<F> || Memory<F> Matrix<typename F::Scalar> attention(
    const F& similarity, const Input<typename F::Scalar>& q, const Input<typename F::Scalar>& k,
    const Input<typename F::Scalar>& v, const AttentionOptions& options = {}) {
  Matrix<typename F::Scalar> out(q.rows(), v.cols());
  attention(similarity, q, k, v, Output<typename F::Scalar>(out), options);
  return out;
}

/// The matrix of weights sim(q_i, k_j) / sum_j' sim(q_i, k_j') itself, (n_q, n_k): attention to the unit vectors.
/// Cost: that of attention with dv = n_k.
template <detail::Tagged F>
Matrix<typename F::Scalar> attention_weights(const F& similarity, const Input<typename F::Scalar>& q,
                                             const Input<typename F::Scalar>& k,
                                             const AttentionOptions& options = {}) {
  using S = typename F::Scalar;
  return attention(similarity, q, k, Matrix<S>::Identity(k.rows(), k.rows()), options);
}

}  // namespace phiattn::inline PHIATTN_ABI
