#pragma once

// What one call of attention does, after all checks: of the queries of one head, or of several that share their keys.

#include <phiattn/attention/any_memory.hpp>
#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/attention/memory.hpp>
#include <phiattn/masks/mask.hpp>

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Bidirectional attention into a partial.
template <Memory M>
AttentionStatus attend_all(M& memory, const InputGroup<typename M::Scalar>& q,
                           const CallKeys<typename M::Scalar>& keys,
                           const PartialRows<typename M::Scalar>& out, Index first) {
  static_assert(!SeesBothSides<M>,
                "phiattn: a memory that sees both sides of a query has no partial results of all keys");
  append_keys(memory, keys);
  return read_beside(memory, q, Padding(keys.log_weights), out, first);
}

/// With an empty memory; causal attention advances.
/// @param out  an OutputGroup or PartialRows
template <Memory M, class Out>
AttentionStatus attend(M& memory, const InputGroup<typename M::Scalar>& q,
                       const CallKeys<typename M::Scalar>& keys, const Out& out,
                       const AttentionOptions& options) {
  const Index n_q = q.rows(), n_k = keys.k.rows();
  const Index position = query_position(options, n_q, n_k);
  if (options.causality == Causality::none) return attend_all(memory, q, keys, out, position);
  // Query i stands beside key i + offset: some queries come before all keys, some keys before all queries, and what
  // follows the pairs sees every key that is left in sight. Those that stand beside no key have a position all the same.
  const Index offset = causal_offset(options, n_q, n_k);
  const Index before = std::clamp<Index>(-offset, 0, n_q);
  const Index past = std::clamp<Index>(offset, 0, n_k);
  const Index pairs = (std::min)(n_q - before, n_k - past);
  const Index after = before + pairs;
  AttentionStatus status = read_group(memory, q.slice(0, before), out.slice(0, before), position);
  append_keys(memory, keys.slice(0, past));
  status.add(advance_group(memory, q.slice(before, pairs), keys.slice(past, pairs), out.slice(before, pairs)),
             0);
  if (after < n_q) {
    const Index missing = Padding(keys.log_weights).missing();
    status.add(read_group(memory, q.slice(after, n_q - after), out.slice(after, n_q - after),
                          position + after - missing),
               0);
  }
  return status;
}

/// Attention of a feature map by a mask that shows no row less than the one before.
template <FeatureMap F, PrefixMask M>
AttentionStatus attend_masked(LinearState<F>& state, const InputGroup<typename F::Scalar>& q,
                              const CallKeys<typename F::Scalar>& keys,
                              const OutputGroup<typename F::Scalar>& out, const M& mask) {
  const Index n_q = q.rows(), n_k = keys.k.rows();
  const Padding padding(keys.log_weights);
  const auto end = [&](Index row) { return mask.keys(row, n_k).end; };
  AttentionStatus status;
  Index taken = 0;
  for (Index row = 0, n = 1; row < n_q; row += n, n = 1) {
    // Rows that stand beside the last key that they see go together, and so do those that see the same keys.
    if (padding.missing() == 0 && end(row) == taken + 1 && row == taken) {
      while (row + n < n_q && end(row + n) == row + n + 1) ++n;
      status.add(advance_group(state, q.slice(row, n), keys.slice(taken, n), out.slice(row, n)), 0);
      taken += n;
      continue;
    }
    append_keys(state, keys.slice(taken, end(row) - taken));
    taken = end(row);
    while (row + n < n_q && end(row + n) == taken) ++n;
    status.add(read_beside(state, q.slice(row, n), padding, out.slice(row, n), row), 0);
  }
  return status;
}

template <PrefixMask P>
void check_prefix(const P& mask, Index n_q, Index n_k) {
  for (Index t = 0; t < n_q; ++t) {
    const KeyRange keys = mask.keys(t, n_k);
    if (keys.begin == 0 && keys.end <= n_k && keys.end >= (t == 0 ? 0 : mask.keys(t - 1, n_k).end)) continue;
    fail_argument("mask: it says that it is a prefix, and is none at row " + std::to_string(t));
  }
}

/// The mask of a call without one of its own.
class Sight {
 public:
  Sight(const AttentionOptions& options, Index n_q, Index n_k)
      : causal_(options.causality == Causality::causal), mask_{causal_offset(options, n_q, n_k)} {}
  /// @param whole  whether the kernel's own mask takes its place
  MaskRef mask(bool whole) const { return causal_ && !whole ? mask_ref(mask_) : mask_ref(all_); }

 private:
  bool causal_;
  CausalMask mask_;
  AllKeys all_;
};

/// Calls take(tiles, factor of the queries) with what a call of a kernel is about; a few numbers a key where there are
/// log-weights are all that grows with n_k.
template <ComputeScalar S, class Take>
auto in_tiles(const KernelRef<S>& kernel, double default_scale, bool scale_on_queries, Index n_q,
              const CallKeys<S>& keys, const MaskRef& mask, const AttentionOptions& options,
              const Take& take) {
  const Index n_k = keys.k.rows();
  const S root = root_scale<S>(options, default_scale);
  // Far from 1 the whole scale may leave the range that its root does not.
  constexpr S kFar = S(1 << 20);
  scale_on_queries = scale_on_queries && root < kFar && root * kFar > 1;
  KeyRows<S> rows{keys.k, keys.v, nullptr, scale_on_queries ? S(1) : root};
  Vector<S> log_weights;
  std::vector<Index> of_queries;
  const Padding padding(keys.log_weights);
  if (keys.log_weights) {
    log_weights.resize(n_k);
    keys.log_weights.as_column().load(0, S(1), Rows<S>(log_weights.data(), n_k, 1));
    rows.log_weights = log_weights.data();
    rows.padded = padding.missing() > 0;
  }
  rows.places.offset = query_position(options, n_q, n_k);
  if (rows.padded && kernel.rules) {
    for (Index t = 0; t < n_q; ++t) of_queries.push_back(padding.of_query(t + rows.places.offset));
    rows.places.of_queries = of_queries.data();
    rows.places.of_keys = padding.of_keys();
  }
  KernelRef<S> of_existing = kernel;
  std::shared_ptr<const Rules<S>> rules;
  if (rows.padded && kernel.rules) rules = kernel.rules->of_existing(rows.log_weights, n_k);
  if (rules) of_existing.rules = rules.get();
  const TiledAttention<S> tiled(of_existing, rows, mask, checked_chunk(options));
  return take(tiled, scale_on_queries ? root * root : root);
}

template <ComputeScalar S>
AttentionStatus attend_tiled(const KernelRef<S>& kernel, double default_scale, bool scale_on_queries,
                             const InputGroup<S>& q, const CallKeys<S>& keys, const MaskRef& mask,
                             const AttentionOptions& options, RowResults<S> results) {
  return in_tiles<S>(
      kernel, default_scale, scale_on_queries, q.rows(), keys, mask, options,
      [&](const TiledAttention<S>& tiled, S factor) { return tiled.attend(q, factor, std::move(results)); });
}

template <Kernel K>
std::optional<typename K::Scalar> sink_of(const K& kernel) {
  if constexpr (Modified<K>) return kernel.rules().sink;
  return {};
}
template <Kernel K>
bool has_whole_mask(const K& kernel) {
  if constexpr (Modified<K>) return kernel.rules().prefix.has_value();
  return false;
}

/// Attention of one similarity, or an empty memory, after all checks of shapes. Made once for all heads; refers to the
/// similarity.
template <class F, class S = typename F::Scalar>
class GroupAttention {
 public:
  GroupAttention(const F& similarity, Index n_q, Index n_k, Index dv, const AttentionOptions& options)
      : similarity_(similarity), dv_(dv), sight_(options, n_q, n_k), options_(options) {}

  /// @param out  an OutputGroup or PartialRows
  template <class Out>
  AttentionStatus operator()(const InputGroup<S>& q, const CallKeys<S>& keys, const Out& out) const {
    if constexpr (Kernel<F>) {
      return attend_tiled<S>(KernelRef<S>::of(similarity_), similarity_.default_scale(q.cols()),
                             kScaleOnQueries<F>, q, keys, sight_.mask(has_whole_mask(similarity_)), options_,
                             RowResults<S>(out, sink_of(similarity_)));
    } else if constexpr (FeatureMap<F>) {
      LinearState<F> state(similarity_, dv_, memory_options(options_));
      return attend(state, q, keys, out, options_);
    } else {
      F memory = similarity_;
      return attend(memory, q, keys, out, options_);
    }
  }

 private:
  const F& similarity_;
  Index dv_;
  Sight sight_;
  AttentionOptions options_;
};

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
template <class F>
concept Attends = Tagged<F> || Memory<F>;

/// What a call is refused for beside the shapes that its arguments must agree in.
/// @param columns  what the last extent of an input is called: columns, dim
template <Attends F>
void check_similarity(const F& similarity, Index n_q, Index n_k, const char* columns, Index d, Index dv,
                      const AttentionOptions& options) {
  const auto check = [columns](const char* of, Index came, const char* reference, Index due) {
    if (came != due) check_equal((std::string(columns) + of).c_str(), came, reference, due);
  };
  if constexpr (Tagged<F>) {
    require_similarity<F>();
    if constexpr (FeatureMap<F>) check(" of q", d, "dimension of the feature map", similarity.dimension());
    checked_scale<typename F::Scalar>(options, similarity.default_scale(d));
    if constexpr (Kernel<F> && Modified<F>) similarity.rules().check(n_q, n_k);
  } else {
    check_equal("size of the memory", similarity.size(), "an empty one", 0);
    if (options.scale) fail_argument("scale: it belongs to the memory; construct the memory with it");
    if (const std::optional<Index> due = similarity.dimension()) check(" of k", d, "dimension d", *due);
    check(" of v", dv, "dimension dv", similarity.value_dimension());
  }
  checked_chunk(options);
  if (options.alignment != Alignment::last &&
      (options.causality == Causality::none || options.query_offset)) {
    fail_argument("alignment: it is for causal attention without a query_offset");
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
