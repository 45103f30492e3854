#pragma once

// Exact attention in tiles: compiled once for a scalar.

#include <phiattn/attention/map_ref.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/tokens.hpp>
#include <phiattn/core/abi.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/masks/mask.hpp>

#include <optional>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Keys, values and their weights as they lie in memory, and what makes keys the vectors that the kernel sees. One of
/// log-weight -inf does not exist.
template <class S>
struct KeyRows {
  InputView<S> k, v;
  const S* log_weights;  // (n_k), or none
  S factor;
  Places places = {};
  bool padded = false;  // whether any is of log-weight -inf
};

/// Attention of a kernel by online softmax (Milakov & Gimelshein 2018; Rabe & Staats 2021): for each tile of queries,
/// one pass over tiles of keys that keeps, for each row, the largest log-similarity so far and the sums relative to
/// it. Cost: 2 n_q n_k (d + dv) flops and n_q n_k exponentials, half when causal; memory O(tile (tile + d + dv)).
template <class S>
class TiledAttention {
 public:
  /// @param kernel, keys, mask  outlive this
  TiledAttention(const KernelRef<S>& kernel, const KeyRows<S>& keys, const MaskRef& mask, Index tile)
      : kernel_(kernel),
        keys_(keys),
        mask_(mask),
        tile_(tile),
        elementwise_(kernel.rules && kernel.rules->is_elementwise(keys.places)) {}

  /// Queries that are rows queries.first, ... of the mask, at most a tile of them.
  void attend(const Queries<S>& queries, const RowSums<S>& out) const;

  /// All of q, a tile after the other.
  AttentionStatus attend(const InputGroup<S>& q, S query_factor, RowResults<S> results) const;

  /// out (n_q, n_k) <- the weights themselves. Works on all keys at a time, of values without columns.
  /// @param sink  as of RowResults
  void weigh(const InputView<S>& q, S query_factor, std::optional<S> sink, Rows<S> out) const;

 private:
  /// Rows of a tile that some keys are hidden from are taken so many together, over the keys that any of them sees.
  static constexpr Index kTileStep = 32;

  struct Tile;

  template <class Take>
  void attend(const Queries<S>& queries, const RowSums<S>& out, const Take& take) const;
  KeyRange sight(Index query) const;
  bool exists(Index key) const;
  Index existing(Index first, Index end) const;
  Rows<const S> load(const InputView<S>& x, Index first, S factor, Rows<S> room) const;
  bool look(const Tile& tile, Index n_k, Index first_key) const;
  void take_tile(const Tile& tile, Rows<const S> tokens, Rows<const S> values, Index first_key) const;
  void take_rows(const Tile& tile, Index t, Index n, const KeyRange& any, Rows<const S> tokens,
                 Rows<const S> values, Index first_key, bool finite) const;
  void add_biases(const Tile& tile, Index t, Index first_key) const;
  void fill_signed_row(const Tile& tile, Index t, Rows<const S> tokens) const;
  void hide(const Tile& tile, Index t, const KeyRange& any, S nothing) const;
  template <int N>
  void take_positive(const Tile& tile, Index t, Index begin, Index end) const;
  void take_signed(const Tile& tile, Index t, Index first_key) const;

  KernelRef<S> kernel_;
  KeyRows<S> keys_;
  MaskRef mask_;
  Index tile_;
  bool elementwise_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
extern template class TiledAttention<float>;
extern template class TiledAttention<double>;
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/attention/tiles-inl.hpp>
#endif
