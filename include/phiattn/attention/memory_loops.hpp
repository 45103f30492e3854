#pragma once

// A memory's blocks, one after the other: compiled once for a scalar.

#include <phiattn/attention/memory.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/core/abi.hpp>

#include <cmath>

namespace phiattn::inline PHIATTN_ABI::detail {

/// A memory behind pointers.
template <class S>
struct ModelRef {
  void* memory;
  Index value_dimension, block_rows;
  S root_scale;
  bool takes_groups;
  Index (*size)(const void*);
  void (*append)(void*, const Tokens<S>&);
  AttentionStatus (*read)(const void*, const Queries<S>&, const RowSums<S>&);
  AttentionStatus (*advance)(void*, const Queries<S>&, const Tokens<S>&, const RowSums<S>&);

  template <class M>
  static ModelRef of(M& model) {
    return {&model,
            model.value_dimension(),
            model.block_rows(),
            static_cast<S>(std::sqrt(std::optional<double>(model.scale()).value_or(1))),
            model.takes_groups(),
            [](const void* m) { return static_cast<const M*>(m)->size(); },
            [](void* m, const Tokens<S>& tokens) { static_cast<M*>(m)->append_block(tokens); },
            [](const void* m, const Queries<S>& queries, const RowSums<S>& out) {
              return static_cast<const M*>(m)->read_block(queries, out);
            },
            [](void* m, const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
              return static_cast<M*>(m)->advance_block(queries, tokens, out);
            }};
  }
};

/// Loads blocks, has the memory take them, and says what comes next in memory. Shapes have been checked.
template <class S>
class MemoryLoops {
 public:
  /// @param log_weights  (n_k), or none
  /// @param position     of the first token; `next` becomes that of the token behind the last taken
  static void append(const ModelRef<S>& model, const InputView<S>& k, const InputView<S>& v,
                     const InputView<S>& log_weights, Index position, Index& next);
  static void read(const ModelRef<S>& model, const InputGroup<S>& q, Index position, RowResults<S>& results);
  static void advance(const ModelRef<S>& model, const InputGroup<S>& q, const InputView<S>& k,
                      const InputView<S>& v, const InputView<S>& log_weights, Index position, Index& next,
                      RowResults<S>& results);

  // What the model says to queries, and to a run of tokens that exist: one after the other if it knows one head alone.
  static AttentionStatus read_run(const ModelRef<S>& model, const Queries<S>& queries, const RowSums<S>& out);
  static AttentionStatus advance_run(const ModelRef<S>& model, const Queries<S>& queries,
                                     const Tokens<S>& tokens, const RowSums<S>& out);

  /// Rows [first, first + n) of keys, into `k`, and of values, in place where they lie well.
  static Tokens<S> load(Workspace::Frame& frame, const InputView<S>& keys, const InputView<S>& values,
                        const InputView<S>& log_weights, Index first, S root_scale, Rows<S> k);
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
extern template class MemoryLoops<float>;
extern template class MemoryLoops<double>;
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/attention/memory_loops-inl.hpp>
#endif
