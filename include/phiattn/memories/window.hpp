#pragma once

// Exact attention nearby, any memory beyond.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/attention/tiles.hpp>
#include <phiattn/core/float_environment.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/masks/mask.hpp>
#include <phiattn/memories/far_memory.hpp>
#include <phiattn/memories/token_queue.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// Softmax attention, exact over the w tokens nearest to each query and as `Far` has it over all others, under one
/// normaliser:
///
///     out_i = (sum_{j near i} exp(q_i . k_j) v_j + F_i) / (sum_{j near i} exp(q_i . k_j) + f_i)
///
/// where F_i / f_i is what a far memory of exactly the other keys gives. Causal and streaming: the last w tokens, the
/// query's own included, are near; those that leave the window are appended to the far memory. Bidirectional, in
/// attention(): |i - j| <= w/2 are near, and two far memories hold what is before and what is behind.
///
/// Streamed, chunked and parallel calls see the same sets of keys, token by token. merge(other) appends `other` as
/// what came later: associative, not commutative.
/// Cost: beside the far memory's, 2 w (d + dv) flops a token, twice that in blocks, and up to 2 w (d + dv) numbers; no
/// allocation once warmed up.
template <BlockModel Far>
class Windowed : public MemoryBase<Windowed<Far>, typename Far::Scalar> {
 public:
  using S = typename Far::Scalar;
  static constexpr Order kOrder = Order::sequence;

  /// @param w        tokens that are near; 0: none
  /// @param beyond   an empty memory
  /// @param options  scale (default: the far memory's, if it has one, else 1/sqrt(d)); chunk bounds the blocks
  /// @throws std::invalid_argument  if w < 0, if `beyond` is not empty or has another scale, or on an option out of range
  Windowed(Index w, Far beyond, const AttentionOptions& options = {})
      : window_((std::min)(w, kLongest)),
        block_rows_((std::min)(detail::checked_memory_chunk(options), Index{this->kBlockRows})),
        far_(std::move(beyond)),
        near_(far_.value_dimension()),
        scale_(options.scale) {
    detail::check_at_least("window", w, 0);
    detail::check_equal("size of the far memory", far_.size(), "an empty one", 0);
    if (scale_) detail::checked_scale<S>(options, 1);
    share_scale();
    if (const std::optional<Index> d = far_.dimension()) settle(*d);
  }

  Index window() const { return window_; }
#pragma push_macro("far")  // <windows.h> has one, which is nothing
#undef far
  const Far& far() const { return far_; }
#pragma pop_macro("far")
  Index size() const { return far_.size() + near_.size(); }
  std::optional<Index> dimension() const { return dimension_; }
  Index value_dimension() const { return near_.value_dimension(); }
  std::optional<double> scale() const { return scale_; }

  /// Bidirectional attention by a window about each query: query i stands at key i + first, or at the last before it that
  /// exists. The memory must be empty, and stays so. Keeps n_q (dv + 2) numbers, what is behind, until it meets the rest;
  /// and, where some keys do not exist, all that do.
  /// @param log_weights  (n_k), or none
  AttentionStatus attend_around(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                                Index first, const Input<S>& log_weights = {}) const {
    this->check_dimension("columns of k", k.cols());
    const detail::Padding padding(log_weights);
    const Index n_q = q.rows(), n_k = k.rows() - padding.missing(), farthest = window_ / 2 + 1;
    const detail::Beside beside{padding, std::clamp(first, -n_q - farthest, k.rows() + farthest), n_q, n_k};
    if (padding.missing() == 0) return attend_around(q, {k, v, log_weights}, beside, out);
    Matrix<S> keys(n_k, k.cols()), values(n_k, v.cols()), weights(n_k, 1);
    for (Index j = 0; j < k.rows(); ++j) {
      if (!padding.exists(j)) continue;
      const Index at = padding.of_keys()[j];
      k.load(j, S(1), keys.row(at));
      v.load(j, S(1), values.row(at));
      log_weights.as_column().load(j, S(1), weights.row(at));
    }
    using View = detail::InputView<S>;
    return attend_around(q, {View(keys), View(values), View(weights)}, beside, out);
  }

  // What MemoryBase, or another window, works with; see BlockModel.
  Index block_rows() const { return block_rows_; }
  void forget_all() {
    far_.clear();
    near_.drop_last(near_.size());
  }
  /// Those that have left the window do not come back.
  bool can_forget_from(Index /*n*/) const { return far_.size() == 0; }
  Index forget_from(Index n) {
    near_.drop_last(near_.size() - n);
    return near_.middle(n - 1, 1).first + 1;
  }
  bool takes_groups() const { return far_.takes_groups(); }
  std::optional<S> sink() const { return far_.sink(); }

  void settle(Index d) {
    if (dimension_) return;
    far_.settle(d);
    share_scale();
    if (!scale_) scale_ = detail::checked_scale<S>({}, ExponentialKernel<S>::default_scale(d));
    dimension_ = d;
  }

  void append_block(const Tokens<S>& tokens) {
    const Index room = window_ - near_.size();
    near_.push(tokens);
    ComeBack come_back{near_, tokens.size() - (std::min)(tokens.size(), room)};
    while (near_.size() > window_) {
      const Index rows = (std::min)(near_.run(0, near_.size() - window_), far_.block_rows());
      leave(rows);
      come_back.tokens -= rows;
    }
  }

  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const {
    Workspace::Frame frame;
    attend_near(queries, near_.all(), AllKeys(), out);
    const auto beyond = RowSums<S>::of(frame, queries.rows(), value_dimension());
    const AttentionStatus status = far_.read_block(queries, beyond);
    combine(out, beyond);
    return status;
  }

  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
    Workspace::Frame frame;
    const Index n = queries.size(), heads = queries.heads;
    const Index held = near_.size();
    near_.push(tokens);
    ComeBack come_back{near_, n};
    attend_near(queries, near_.all(), BandMask{held + 1 - window_, held + 1}, out);
    // Row t sees one token leave if the window is full by then.
    const Index before = (std::min)(window_ - held, n);
    const auto beyond = RowSums<S>::of(frame, heads * n, value_dimension());
    AttentionStatus status;
    if (before > 0) status = far_.read_block(queries.middle(0, before), beyond.middle(0, heads * before));
    come_back.tokens -= before;
    for (Index first = before, rows; first < n; first += rows) {
      rows = (std::min)(near_.run(0, n - first), far_.block_rows());
      status.add(far_.advance_block(queries.middle(first, rows), near_.middle(0, rows),
                                    beyond.middle(heads * first, heads * rows)),
                 heads * first);
      near_.drop(rows);
      come_back.tokens -= rows;
    }
    combine(out, beyond);
    return status;
  }

  void check_same(const Windowed& other) const {
    detail::check_equal("window of the other memory", other.window_, "window of this one", window_);
    far_.check_same(other.far_);
  }

  /// The tokens of `other` come later.
  void absorb(const Windowed& other) {
    if (!other.dimension_) return;
    if (other.near_.size() >= window_) {
      while (near_.size() > 0) leave((std::min)(near_.run(0, near_.size()), far_.block_rows()));
      far_.merge(other.far_);
    }
    for (Index first = 0, n; first < other.near_.size(); first += n) {
      n = other.near_.run(first, other.near_.size());
      append_block(other.near_.middle(first, n));
    }
  }

 private:
  static constexpr Index kLongest = Index{1} << 60;

  AttentionStatus attend_around(const Input<S>& q, const detail::CallKeys<S>& keys,
                                const detail::Beside& beside, const Output<S>& out) const {
    const detail::FloatEnvironment environment;
    Windowed settled = *this;
    settled.settle(keys.k.cols());
    const Far& empty = settled.far_;
    const auto root_scale = static_cast<S>(std::sqrt(*settled.scale_));
    const Index half = window_ / 2;
    const Index n_q = q.rows();

    Far behind = empty;
    auto rest = Partial<S>::empty(n_q, keys.v.cols());
    AttentionStatus status;
    detail::sweep_far(behind, q, keys, root_scale, beside.upside_down(), half, block_rows_, status,
                      [&](Index row, Rows<const S>, const RowSums<S>& results) {
                        for (Index t = 0; t < results.rows(); ++t)
                          combine(rest.row_sums().middle(n_q - 1 - row - t, 1), results.middle(t, 1));
                      });

    Far before = empty;
    detail::RowResults<S> door(out, sink());
    const auto join = [&](Index row, Rows<const S> queries, const RowSums<S>& results) {
      const Index n = queries.rows;
      combine(results, rest.row_sums().middle(row, n));
      Workspace::Frame frame;
      const Around about{&beside, half, row};
      const Index from = about.keys(0, beside.n_k).begin;
      const Index to = (std::max)(from, about.keys(n - 1, beside.n_k).end);
      const Tokens<S> tokens =
          detail::MemoryLoops<S>::load(frame, keys.k, keys.v, keys.log_weights, from, root_scale,
                                       frame.template rows<S>(to - from, keys.k.cols()));
      const auto nearby = RowSums<S>::of(frame, n, keys.v.cols());
      attend_near({queries}, tokens, Around{&beside, half, row, from}, nearby);
      combine(nearby, results);
      door.take(row, nearby);
    };
    detail::sweep_far(before, q, keys, root_scale, beside, half, block_rows_, status, join);
    door.add(status);
    return door.finish();
  }

  /// The keys at most `half` from that beside which a query stands, of those from the first on.
  struct Around {
    const detail::Beside* beside;
    Index half, row, first = 0;

    KeyRange keys(Index t, Index n_k) const {
      const Index at = (*beside)(row + t) - first;
      const Index end = std::clamp<Index>(at + half + 1, 0, n_k);
      return {std::clamp<Index>(at - half, 0, end), end};
    }
  };

  /// Both parts have one scale.
  void share_scale() {
    const std::optional<double> theirs = far_.scale();
    if (scale_ && theirs && *scale_ != *theirs) {
      detail::fail_argument("scale: got " + detail::number(*scale_) + ", expected " +
                            detail::number(*theirs) + " (scale of the far memory)");
    }
    if (theirs) scale_ = theirs;
  }

  /// Exact softmax attention to what the mask shows of some tokens.
  template <Mask M>
  static void attend_near(const Queries<S>& queries, const Tokens<S>& tokens, const M& mask,
                          const RowSums<S>& out) {
    const ExponentialKernel<S> kernel;
    detail::TiledAttention<S>(
        detail::KernelRef<S>::of(kernel),
        {detail::InputView<S>(tokens.k), detail::InputView<S>(tokens.v), tokens.log_weights, S(1)},
        detail::mask_ref(mask), kNearTile)
        .attend({queries.q, 0, queries.heads}, out);
  }

  /// The n oldest, which stand one behind the other, leave the window for the far memory.
  void leave(Index n) {
    far_.append_block(near_.middle(0, n));
    near_.drop(n);
  }

  /// Tokens in the window that have come too early, should the far memory throw: it stays as long as it was.
  struct ComeBack {
    detail::TokenQueue<S>& window;
    Index tokens;
    ~ComeBack() { window.drop_last(tokens); }
  };

  static constexpr Index kNearTile = 128;

  Index window_;
  Index block_rows_;
  Far far_;
  detail::TokenQueue<S> near_;
  std::optional<double> scale_;
  std::optional<Index> dimension_;
};

}  // namespace phiattn::inline PHIATTN_ABI
