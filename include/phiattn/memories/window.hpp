#pragma once

// Exact attention nearby, any memory beyond. Next: analysis/error.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/block_memory.hpp>
#include <phiattn/memories/far_memory.hpp>
#include <phiattn/memories/near_attention.hpp>
#include <phiattn/memories/token_queue.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace phiattn {

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
template <Memory Far>
class Windowed : public detail::BlockMemory<Windowed<Far>, typename Far::Scalar> {
 public:
  using S = typename Far::Scalar;

  /// @param w        tokens that are near; 0: none
  /// @param far      an empty memory
  /// @param options  scale (default: the far memory's, if it tells, else 1/sqrt(d)); chunk bounds the blocks
  /// @throws std::invalid_argument  if w < 0, if `far` is not empty or has another scale, or on an option out of range
  Windowed(Index w, Far far, const AttentionOptions& options = {})
      : window_(w),
        block_rows_(detail::checked_block_rows(options)),
        far_(std::move(far)),
        near_(far_.value_dimension()),
        scale_(options.scale) {
    detail::check_at_least("window", w, 0);
    detail::check_equal("size of the far memory", far_.size(), "an empty one", 0);
    window_ = std::min(w, kLongest);
    if (scale_) detail::checked_positive("scale", *scale_);
    if constexpr (requires { far_.scale(); }) {
      const auto root = static_cast<double>(detail::root_scale<S>(options, 1));
      if (scale_ && root * root != far_.scale()) {
        detail::fail_argument("scale: got " + std::to_string(*scale_) + ", expected " +
                              std::to_string(far_.scale()) + " (scale of the far memory)");
      }
      scale_ = far_.scale();
    }
  }

  Index window() const { return window_; }
  const Far& far() const { return far_; }
  Index size() const { return far_.size() + near_.size(); }
  Index value_dimension() const { return near_.value_dimension(); }

  /// Adds the tokens of `other`, a memory of the same window and kind of far memory, as what follows these.
  void merge(const Windowed& other) {
    detail::check_equal("window of the other memory", other.window_, "window of this one", window_);
    detail::check_equal("dv of the other memory", other.value_dimension(), "dv of this one",
                        value_dimension());
    if (!other.dimension_) return;
    check_dimension("dimension d of the other memory", *other.dimension_);
    dimension_ = other.dimension_;
    if (other.near_.size() == window_) {
      detail::append_far(far_, near_.all());
      near_.drop(near_.size());
      far_.merge(other.far_);
    }
    append_block(other.near_.all());
  }

  /// Bidirectional attention by a window about each query: query i stands at key i + first. The memory must be empty,
  /// and stays so. Keeps n_q (dv + 2) numbers, what is behind, until it meets the rest.
  AttentionStatus attend_around(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                                Index first) const {
    const Index half = window_ / 2;
    const Index n_q = q.rows();
    const Index n_k = k.rows();
    const Index offset = std::clamp(first, -n_q - half - 1, n_k + half + 1);
    const S scale = scale_for(k.cols());

    Far behind = far_;
    auto rest = Partial<S>::empty(n_q, v.cols());
    AttentionStatus status;
    status.clamped_rows +=
        detail::sweep_far(behind, q, k, v, n_k - n_q - offset - half - 1, n_k - n_q - offset, true,
                          block_rows_,
                          [&](Index row, Index n, const detail::PartialRows<S>& results) {
                            const Index begin = n_q - row - n;
                            rest.out.middleRows(begin, n) = results.out.colwise().reverse();
                            rest.log_normaliser.segment(begin, n) = results.log_normaliser.reverse();
                            rest.sign.segment(begin, n) = results.sign.reverse();
                          })
            .clamped_rows;

    Far before = far_;
    Work work;
    const auto join = [&](Index row, Index n, detail::PartialRows<S> results) {
      detail::combine_rows<S>(results, {rest.out.middleRows(row, n), rest.log_normaliser.segment(row, n),
                                        rest.sign.segment(row, n)});
      const Index from = std::clamp<Index>(offset + row - half, 0, n_k);
      const Index to = std::clamp<Index>(offset + row + n + half, from, n_k);
      const auto tokens = work.buffers.load_tokens(k, v, nullptr, from, to - from);
      auto near = work.near_results.results(n, v.cols());
      detail::attend_near<S>(work.buffers.load_queries(q, row, n), scale, tokens,
                             {offset + row - half - from, offset + row + half + 1 - from}, near, work.near);
      detail::combine_rows<S>(near, results);
      add_nonpositive(near, row, status);
      out.store(row, near.out);
    };
    status.clamped_rows +=
        detail::sweep_far(before, q, k, v, offset - half - 1, offset, false, block_rows_, join).clamped_rows;
    return status;
  }

  // What another window would drive; see detail::BlockMemory.
  Index block_rows() const { return block_rows_; }

  void check_dimension(const char* what, Index d) const {
    if constexpr (requires { far_.check_dimension(what, d); }) far_.check_dimension(what, d);
    if (dimension_) detail::check_equal(what, d, "dimension d", *dimension_);
  }

  void append_block(const detail::TokenRows<S>& tokens) {
    take(tokens);
    const Index leaving = std::max<Index>(0, near_.size() - window_);
    detail::append_far(far_, near_.rows(0, leaving));
    near_.drop(leaving);
  }

  AttentionStatus read_block(const ConstMatrixRef<S>& q, Index first, detail::PartialRows<S> results) const {
    AttentionStatus status;
    work_.with([&](Work& work) {
      const Index n = q.rows();
      detail::attend_near<S>(q, scale_for(q.cols()), near_.all(), {-n, near_.size()}, results, work.near);
      auto far = work.far_results.results(n, value_dimension());
      status.clamped_rows = detail::read_far<Far, S>(far_, q, first, far).clamped_rows;
      detail::combine_rows<S>(results, far);
    });
    add_nonpositive(results, 0, status);
    return status;
  }

  AttentionStatus advance_block(const ConstMatrixRef<S>& q, const detail::TokenRows<S>& tokens,
                                detail::PartialRows<S> results) {
    const Index n = q.rows();
    const Index position = size();
    const Index held = near_.size();
    take(tokens);
    detail::attend_near<S>(q, scale_for(q.cols()), near_.all(), {held + 1 - window_, held + 1}, results,
                           work_->near);
    // Row t sees one token leave if the window is full by then.
    const Index before = std::min(window_ - held, n);
    auto far = work_->far_results.results(n, value_dimension());
    AttentionStatus status;
    status.clamped_rows =
        detail::read_far<Far, S>(far_, q.topRows(before), position, far.slice(0, before)).clamped_rows +
        detail::advance_far<Far, S>(far_, q.bottomRows(n - before), near_.rows(0, n - before),
                                    position + before, far.slice(before, n - before))
            .clamped_rows;
    near_.drop(n - before);
    detail::combine_rows<S>(results, far);
    add_nonpositive(results, 0, status);
    return status;
  }

 private:
  static constexpr Index kLongest = Index{1} << 60;

  struct Work {
    detail::NearWork<S> near;
    detail::BlockBuffers<S> buffers, near_results, far_results;
  };

  S scale_for(Index d) const {
    return static_cast<S>(scale_.value_or(ExponentialKernel<S>::default_scale(d)));
  }

  void take(const detail::TokenRows<S>& tokens) {
    dimension_ = tokens.k.cols();
    near_.push(tokens);
  }

  static void add_nonpositive(const detail::PartialRows<S>& results, Index first, AttentionStatus& status) {
    for (Index t = 0; t < results.out.rows(); ++t) {
      if (results.sign(t) <= 0) status.add(first + t);
    }
  }

  Index window_;
  Index block_rows_;
  Far far_;
  detail::TokenQueue<S> near_;
  std::optional<double> scale_;
  std::optional<Index> dimension_;
  detail::KeptScratch<Work> work_;
};

}  // namespace phiattn
