#pragma once

// The memory of a kernel: exact attention.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/attention/probes.hpp>
#include <phiattn/attention/step.hpp>
#include <phiattn/attention/tiles.hpp>
#include <phiattn/attention/token_store.hpp>
#include <phiattn/core/check.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// All keys and values themselves: softmax attention's key-value cache, for any kernel.
///
/// The dimension d of the keys, and with it a default scale, is settled by the first append or advance.
/// Cost: n (d + dv + 1) numbers of memory; reading n_q queries takes 2 n_q n (d + dv) flops.
template <Kernel K>
class KeyValueCache : public MemoryBase<KeyValueCache<K>, typename K::Scalar> {
 public:
  using S = typename K::Scalar;

  /// @param dv       columns of the values to come
  /// @param options  scale and chunk; the rest is a matter of the calls
  /// @throws std::invalid_argument  if dv < 0, or on a scale or chunk that is out of range
  KeyValueCache(K kernel, Index dv, const AttentionOptions& options = {})
      : kernel_(std::move(kernel)),
        chunk_(detail::checked_chunk(options)),
        scale_(options.scale),
        tokens_(detail::checked_dv(dv)) {
    if (scale_) detail::checked_scale<S>(options, 1);
  }

  const K& kernel() const { return kernel_; }
  Index size() const { return tokens_.size(); }
  std::optional<Index> dimension() const { return dimension_; }
  Index value_dimension() const { return tokens_.value_dimension(); }
  std::optional<double> scale() const { return scale_; }

  // What MemoryBase works with; see BlockModel.
  bool takes_groups() const { return true; }
  Index block_rows() const { return std::min<Index>(chunk_, 1024); }

  void settle(Index d) {
    if (dimension_) return;
    if (!scale_) scale_ = detail::checked_scale<S>({}, kernel_.default_scale(d));
    dimension_ = d;
  }

  void append_block(const Tokens<S>& tokens) { tokens_.push(tokens); }

  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const {
    attend(queries, AllKeys(), out);
    return {};
  }

  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
    const Index before = size();
    append_block(tokens);
    attend(queries, CausalMask{before}, out);
    return {};
  }

  bool advance_step(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                    const detail::InputView<S>& v, S root_scale,
                    const detail::OutputGroup<S>& out) requires detail::Exponential<K> {
    const Index n = size() + 1;
    if (n > detail::kStepKeys) return false;
    Workspace::Frame frame;
    frame.reserve<S>(detail::step_room<S>(q.heads(), k.cols(), v.cols(), n), 1);
    tokens_.push(k, root_scale, v);
    if (detail::attend_step<S>(q, root_scale, tokens_.keys(), tokens_.values(), tokens_.log_weights(), out)) {
      return true;
    }
    tokens_.drop_last();
    return false;
  }

  static constexpr bool kAbsorbsAtOnce = true;

  void check_same(const KeyValueCache& other) const {
    if (other.dimension_ &&
        !detail::Probes<S>::same_kernel(detail::KernelRef<S>::of(kernel_),
                                        detail::KernelRef<S>::of(other.kernel_), *other.dimension_)) {
      detail::fail_argument("merge: the memories differ in their kernel");
    }
  }

  void absorb(const KeyValueCache& other) { tokens_.push(other.tokens_.all()); }

 private:
  template <Mask M>
  void attend(const Queries<S>& queries, const M& mask, const RowSums<S>& out) const {
    detail::TiledAttention<S>(detail::KernelRef<S>::of(kernel_),
                              {detail::InputView<S>(tokens_.keys()), detail::InputView<S>(tokens_.values()),
                               tokens_.log_weights(), S(1)},
                              detail::mask_ref(mask), chunk_)
        .attend({queries.q, 0, queries.heads}, out);
  }

  K kernel_;
  Index chunk_;
  std::optional<double> scale_;
  std::optional<Index> dimension_;
  detail::TokenStore<S> tokens_;
};

}  // namespace phiattn::inline PHIATTN_ABI
