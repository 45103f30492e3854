#pragma once

// The memory of a feature map: linear attention.

#include <phiattn/attention/linear_core.hpp>
#include <phiattn/attention/memory_base.hpp>
#include <phiattn/attention/probes.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/count.hpp>

#include <algorithm>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// All keys and values seen so far, as m x (dv + 1) numbers:
///
///     S_i = sum_j varphi_i(k_j) v_j,   z_i = sum_j varphi_i(k_j),   out = sum_i phi_i(q) S_i / sum_i phi_i(q) z_i
///
/// (Katharopoulos et al. 2020, eq. 9-12), kept under log-scales so that no finite input overflows and, for positive
/// maps, the scaled normaliser is at least 1 (e^-40 inside a causal block): there is no epsilon.
/// Cost: for n tokens 2 n m (2 dv + 2) flops beyond the map's own, about 75 n (m + dv) more inside causal blocks; O(m dv)
/// memory and O(1) a token, however many there are.
template <FeatureMap Map>
class LinearState : public MemoryBase<LinearState<Map>, typename Map::Scalar> {
 public:
  using S = typename Map::Scalar;

  /// @param dv       columns of the values to come
  /// @param options  scale and chunk; the rest is a matter of calls, and refused
  /// @throws std::invalid_argument  if dv < 0, on a scale or chunk that is out of range, and on other options
  LinearState(Map map, Index dv, const AttentionOptions& options = {})
      : map_(std::move(map)),
        scale_(detail::checked_scale<S>(options, map_.default_scale(map_.dimension()))),
        chunk_((std::min)(detail::checked_memory_chunk(options), largest_chunk(map_.feature_dimension()))),
        core_(map_.feature_dimension(), dv) {}

  const Map& map() const { return map_; }
  Index size() const { return size_; }
  Index dimension() const { return map_.dimension(); }
  Index value_dimension() const { return core_.value_dimension(); }
  double scale() const { return scale_; }

  // What MemoryBase works with; see BlockModel.
  void forget_all() {
    core_ = detail::LinearCoreOf<Map>(core_.features(), core_.value_dimension());
    size_ = {};
  }
  bool takes_groups() const { return true; }
  Index block_rows() const { return chunk_; }

  void append_block(const Tokens<S>& tokens) {
    core_.append(map_ref(), tokens);
    size_ += tokens.size();
  }

  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const {
    core_.read(map_ref(), queries, out);
    return {};
  }

  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
    core_.advance(map_ref(), queries, tokens, out);
    size_ += tokens.size();
    return {};
  }

  static constexpr bool kAbsorbsAtOnce = true;

  void check_same(const LinearState& other) const {
    detail::check_equal("features of the other state", other.core_.features(), "features of this one",
                        core_.features());
    if (!detail::Probes<S>::same_map(map_ref(), other.map_ref(), dimension(), LogFeatureMap<Map>)) {
      detail::fail_argument("merge: the memories differ in their feature map");
    }
  }

  void absorb(const LinearState& other) {
    core_.merge(other.core_);
    size_ += other.size_;
  }

 private:
  /// Features of a chunk take at most 16 MiB in float, yet are enough to keep the products busy.
  static Index largest_chunk(Index m) {
    return std::max<Index>(16, (Index{1} << 22) / std::max<Index>(m, 1));
  }

  detail::MapRef<S> map_ref() const { return detail::MapRef<S>::of(map_); }

  Map map_;
  double scale_;
  Index chunk_;
  detail::LinearCoreOf<Map> core_;
  detail::Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI
