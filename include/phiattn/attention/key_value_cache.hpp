#pragma once

// The memory of a kernel: exact attention.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/attention/probes.hpp>
#include <phiattn/attention/step.hpp>
#include <phiattn/attention/tiles.hpp>
#include <phiattn/attention/token_store.hpp>
#include <phiattn/core/check.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

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
  /// @param options  scale and chunk; the rest is a matter of calls, and refused
  /// @throws std::invalid_argument  if dv < 0, on a scale or chunk that is out of range, and on other options
  KeyValueCache(K kernel, Index dv, const AttentionOptions& options = {})
      : kernel_(std::move(kernel)),
        chunk_(detail::checked_memory_chunk(options)),
        scale_(options.scale),
        tokens_(detail::checked_dv(dv)) {
    if (scale_) detail::checked_scale<S>(options, 1);
  }

  const K& kernel() const { return kernel_; }
  Index size() const { return tokens_.size(); }
  std::optional<Index> dimension() const { return dimension_; }
  Index value_dimension() const { return tokens_.value_dimension(); }
  std::optional<double> scale() const { return scale_; }

  /// All keys times sqrt(scale), (n, d), and values (n, dv), until the next token comes.
  auto keys() const { return tokens_.keys().eigen(); }
  auto values() const { return tokens_.values().eigen(); }

  /// Room for n tokens in all, once the first has come: until then nothing is allocated, and then nothing more.
  void reserve(Index n) {
    detail::check_at_least("n of reserve", n, 0);
    if (dimension_) tokens_.reserve(n, *dimension_);
    reserved_ = n;
  }

  // What MemoryBase works with; see BlockModel.
  std::optional<S> sink() const {
    if constexpr (detail::Modified<K>) return kernel_.rules().sink;
    return {};
  }
  Index reading_position() const { return size() == 0 ? 0 : position(size() - 1) + 1; }
  void forget_all() {
    tokens_.truncate(0);
    positions_.clear();
  }
  bool takes_groups() const { return true; }
  Index block_rows() const { return std::min<Index>(chunk_, 1024); }

  void settle(Index d) {
    if (dimension_) return;
    if (!scale_) scale_ = detail::checked_scale<S>({}, kernel_.default_scale(d));
    tokens_.reserve(reserved_, d);
    dimension_ = d;
  }

  bool can_forget_from(Index /*n*/) const { return true; }
  Index forget_from(Index n) {
    tokens_.truncate(n);
    if (!positions_.empty()) positions_.resize(static_cast<std::size_t>(n));
    return reading_position();
  }

  void append_block(const Tokens<S>& tokens) {
    check_rules({}, tokens);
    push(tokens);
  }

  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const {
    check_rules(queries, {});
    attend(queries, AllKeys(), out);
    return {};
  }

  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
    check_rules(queries, tokens);
    if constexpr (detail::Modified<K>) {
      if (kernel_.rules().prefix.value_or(0) > queries.first) {
        detail::fail_argument(
            "PrefixCausal: a prefix sees itself whole: append it, then read and advance the rest");
      }
    }
    const Index before = size();
    push(tokens);
    attend(queries, CausalMask{before - queries.first}, out);
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
    tokens_.truncate(n - 1);
    return false;
  }

  static constexpr bool kAbsorbsAtOnce = true;

  void check_same(const KeyValueCache& other) const {
    if (other.dimension_ &&
        !detail::Probes<S>::same_kernel(detail::KernelRef<S>::of(kernel_),
                                        detail::KernelRef<S>::of(other.kernel_), *other.dimension_)) {
      detail::fail_argument("merge: the memories differ in their kernel");
    }
    if constexpr (detail::Modified<K>) {
      if (!(kernel_.rules() == other.kernel_.rules())) {
        detail::fail_argument("merge: the memories differ in what modifies their kernel");
      }
    }
  }

  void absorb(const KeyValueCache& other) { push(other.tokens_.all(), &other); }

 private:
  /// Matrices and lists of modifiers must reach as far as the cache does.
  void check_rules(const Queries<S>& queries, const Tokens<S>& tokens) const {
    if constexpr (detail::Modified<K>) {
      kernel_.rules().check({queries.first, queries.first + queries.size()},
                            {tokens.first, tokens.first + tokens.size()});
    }
  }

  /// Positions are kept where a modifier asks for them and they are not just counted.
  void push(const Tokens<S>& tokens, const KeyValueCache* from = nullptr) {
    const Index before = size(), n = tokens.size();
    if constexpr (detail::Modified<K>) {
      const bool counted = from ? from->positions_.empty() && before == 0 : tokens.first == before;
      if (n > 0 && (!positions_.empty() || !counted)) {
        std::vector<Index> positions;
        for (Index j = 0; j < before; ++j) positions.push_back(position(j));
        for (Index j = 0; j < n; ++j) positions.push_back(from ? from->position(j) : tokens.first + j);
        tokens_.push(tokens);
        positions_.swap(positions);
        return;
      }
    }
    tokens_.push(tokens);
  }

  Index position(Index j) const { return positions_.empty() ? j : positions_[static_cast<std::size_t>(j)]; }

  template <Mask M>
  void attend(const Queries<S>& queries, const M& mask, const RowSums<S>& out) const {
    detail::TiledAttention<S>(detail::KernelRef<S>::of(kernel_),
                              {detail::InputView<S>(tokens_.keys()),
                               detail::InputView<S>(tokens_.values()),
                               tokens_.log_weights(),
                               S(1),
                               {0, nullptr, positions_.empty() ? nullptr : positions_.data()}},
                              detail::mask_ref(mask), chunk_)
        .attend(queries, out);
  }

  K kernel_;
  Index chunk_;
  std::optional<double> scale_;
  std::optional<Index> dimension_;
  Index reserved_ = 0;
  detail::TokenStore<S> tokens_;
  std::vector<Index> positions_;  // empty as long as they are just counted
};

}  // namespace phiattn::inline PHIATTN_ABI
