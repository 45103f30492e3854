#pragma once

// The memories of all heads of several streams.

#include <phiattn/attention/memory.hpp>
#include <phiattn/core/heads.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// What may come with the tokens, or with the queries, of all heads.
template <detail::ComputeScalar S>
struct HeadTokenOptions {
  /// (batch, n_k), one a key of each sequence, for all its heads; see TokenOptions.
  Input<S> log_weights = {};

  /// Position of the first of these tokens, or of the first query. Default: as the memories have it.
  std::optional<Index> first = std::nullopt;

  /// Which streams the sequences of the batch belong to, each another. Default: sequence b to stream b, for all streams.
  std::span<const Index> streams = {};
};

/// A memory for every head of k and v, of every stream: what a model keeps of a layer, in place of a loop over heads. Of
/// the heads of q, g = heads of q / heads of k in a row share a head of k, and go through its memory together.
///
///     HeadMemories memories(streams, kv_heads, KeyValueCache(softmax, dv));
///     memories.advance(q, k, v, out);   // (streams, heads, n, d) (streams, kv_heads, n, d) (streams, kv_heads, n, dv)
///
/// Streams start, end and are cleared one by one; their lengths differ as they will.
/// Cost: that of its memories; nothing is copied, and scratch belongs to the thread.
template <detail::GroupMemory M>
class HeadMemories {
 public:
  using Scalar = typename M::Scalar;
  using S = Scalar;

  /// @param empty  what each head starts with
  /// @throws std::invalid_argument  if a number is negative or `empty` is not
  HeadMemories(Index streams, Index kv_heads, const M& empty)
      : HeadMemories(streams,
                     std::vector<M>(static_cast<std::size_t>((std::max)(kv_heads, Index{0})), empty)) {
    detail::check_at_least("kv_heads", kv_heads, 0);
  }

  /// Each head of k with an empty memory of its own: centres, frames or windows differ by head.
  HeadMemories(Index streams, std::vector<M> of_heads) : empty_(std::move(of_heads)) {
    for (const M& empty : empty_) detail::check_equal("size of the memory", empty.size(), "an empty one", 0);
    resize(streams);
  }

  Index streams() const { return streams_; }
  Index kv_heads() const { return static_cast<Index>(empty_.size()); }
  /// Tokens of a stream.
  Index size(Index stream) const { return empty_.empty() ? 0 : at(checked(stream), 0).size(); }
  const M& memory(Index stream, Index kv_head) const { return at(checked(stream), checked_head(kv_head)); }
  M& memory(Index stream, Index kv_head) { return at(checked(stream), checked_head(kv_head)); }

  /// Adds tokens, (batch, kv_heads, n, d) and (batch, kv_heads, n, dv).
  void append(const HeadsInput<S>& k, const HeadsInput<S>& v, const HeadTokenOptions<S>& options = {}) {
    check_tokens(k, v, options);
    for (Index b = 0; b < k.shape().batch; ++b) {
      for (Index h = 0; h < kv_heads(); ++h) {
        at(stream(b, options), h).append(k.head(b, h), v.head(b, h), of_sequence(b, options));
      }
    }
  }

  /// A causal block, for decoding or a prompt: token t of every head sees the past of its stream and the tokens <= t.
  /// @return the rows whose normaliser is no positive number, numbered as (batch, heads, tokens) of q
  /// @throws std::invalid_argument  on shapes that do not fit and on outputs that share memory, before anything changes.
  ///                                Should a memory throw later, those before it have taken their tokens: memory().size()
  AttentionStatus advance(const HeadsInput<S>& q, const HeadsInput<S>& k, const HeadsInput<S>& v,
                          const HeadsOutput<S>& out, const HeadTokenOptions<S>& options = {}) {
    check_tokens(k, v, options);
    detail::check_equal("tokens of q", q.shape().tokens, "tokens of k", k.shape().tokens);
    check_queries(q, out, options);
    detail::check_equal("dim of q", q.shape().dim, "dim of k", k.shape().dim);
    out.check_apart_from("k", k);
    out.check_apart_from("v", v);
    out.check_apart_from("log_weights", options.log_weights);
    return for_each(q, out, [&](Index b, Index h, const auto& of_q, const auto& of_out) {
      return at(stream(b, options), h)
          .advance_heads(of_q, k.head(b, h), v.head(b, h), of_out, of_sequence(b, options));
    });
  }

  /// Attends to all that the streams hold.
  AttentionStatus read(const HeadsInput<S>& q, const HeadsOutput<S>& out,
                       const HeadTokenOptions<S>& options = {}) const {
    check_queries(q, out, options);
    if (options.log_weights) detail::fail_argument("log_weights: read takes no keys");
    return for_each(q, out, [&](Index b, Index h, const auto& of_q, const auto& of_out) {
      return at(stream(b, options), h).read_heads(of_q, of_out, options.first);
    });
  }

  /// Every stream takes in the tokens of the same stream of `other`, all or nothing.
  void merge(const HeadMemories& other) {
    detail::check_equal("streams of the other memories", other.streams_, "streams of these", streams_);
    detail::check_equal("kv_heads of the other memories", other.kv_heads(), "kv_heads of these", kv_heads());
    std::vector<M> merged = memories_;
    for (std::size_t i = 0; i < merged.size(); ++i) merged[i].merge(other.memories_[i]);
    memories_.swap(merged);
  }

  void clear() {
    for (Index b = 0; b < streams_; ++b) clear(b);
  }
  /// A stream ends, and another may start in its place.
  void clear(Index stream) {
    checked(stream);
    for (Index h = 0; h < kv_heads(); ++h) at(stream, h) = empty_[static_cast<std::size_t>(h)];
  }

  /// The tokens of a stream from the n-th on have never come; see truncate() of its memories. All or nothing.
  void truncate(Index stream, Index n) {
    checked(stream);
    for (Index h = 0; h < kv_heads(); ++h) at(stream, h).check_truncate(n);
    for (Index h = 0; h < kv_heads(); ++h) at(stream, h).truncate(n);
  }

  /// Room for n tokens in each memory.
  void reserve(Index n) requires requires(M memory) { memory.reserve(n); }
  {
    for (M& memory : memories_) memory.reserve(n);
  }

  /// Streams from `streams` on end; new ones are empty. The others are moved, not copied; all or nothing, should it throw.
  void resize(Index streams) {
    detail::check_at_least("streams", streams, 0);
    std::vector<M> fresh, kept;
    for (Index b = streams_; b < streams; ++b) fresh.insert(fresh.end(), empty_.begin(), empty_.end());
    kept.reserve(static_cast<std::size_t>(streams) * empty_.size());
    const auto whole = memories_.begin() + (std::min)(streams_, streams) * kv_heads();
    kept.insert(kept.end(), std::make_move_iterator(memories_.begin()), std::make_move_iterator(whole));
    kept.insert(kept.end(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
    memories_.swap(kept);
    streams_ = streams;
  }

 private:
  M& at(Index stream, Index h) { return memories_[static_cast<std::size_t>(stream * kv_heads() + h)]; }
  const M& at(Index stream, Index h) const {
    return memories_[static_cast<std::size_t>(stream * kv_heads() + h)];
  }

  Index checked(Index stream) const { return checked("stream", stream, streams_); }
  Index checked_head(Index h) const { return checked("kv_head", h, kv_heads()); }
  static Index checked(const char* what, Index i, Index n) {
    if (i < 0 || i >= n) {
      detail::fail_argument(std::string(what) + ": got " + std::to_string(i) + ", expected one of " +
                            std::to_string(n) + ", counted from 0");
    }
    return i;
  }

  Index stream(Index b, const HeadTokenOptions<S>& options) const {
    return options.streams.empty() ? b : options.streams[static_cast<std::size_t>(b)];
  }
  static TokenOptions<S> of_sequence(Index b, const HeadTokenOptions<S>& options) {
    return {options.log_weights.slice(b, 1), options.first};
  }

  void check_batch(const char* what, Index batch, const HeadTokenOptions<S>& options) const {
    if (options.streams.empty()) return detail::check_equal(what, batch, "streams", streams_);
    detail::check_equal(what, batch, "number of streams given", static_cast<Index>(options.streams.size()));
    for (std::size_t b = 0; b < options.streams.size(); ++b) {
      checked(options.streams[b]);
      if (std::count(options.streams.begin(), options.streams.begin() + static_cast<std::ptrdiff_t>(b),
                     options.streams[b]) > 0) {
        detail::fail_argument("streams: got " + std::to_string(options.streams[b]) + " twice");
      }
    }
  }

  void check_tokens(const HeadsInput<S>& k, const HeadsInput<S>& v,
                    const HeadTokenOptions<S>& options) const {
    check_batch("batch of k", k.shape().batch, options);
    detail::check_equal("batch of v", v.shape().batch, "batch of k", k.shape().batch);
    detail::check_equal("heads of k", k.shape().heads, "kv_heads", kv_heads());
    detail::check_equal("heads of v", v.shape().heads, "kv_heads", kv_heads());
    detail::check_equal("tokens of v", v.shape().tokens, "tokens of k", k.shape().tokens);
    if (options.log_weights) {
      detail::check_equal("rows of log_weights", options.log_weights.rows(), "batch of k", k.shape().batch);
      detail::check_equal("columns of log_weights", options.log_weights.cols(), "tokens of k",
                          k.shape().tokens);
    }
    for (const M& memory : memories_) {
      check_dimension(memory, "dim of k", k.shape().dim);
      detail::check_equal("dim of v", v.shape().dim, "dimension dv", memory.value_dimension());
    }
  }

  void check_queries(const HeadsInput<S>& q, const HeadsOutput<S>& out,
                     const HeadTokenOptions<S>& options) const {
    check_batch("batch of q", q.shape().batch, options);
    if (kv_heads() == 0) detail::check_equal("heads of q", q.shape().heads, "kv_heads", 0);
    if (kv_heads() > 0) {
      detail::check_equal("remainder of the heads of q over kv_heads", q.shape().heads % kv_heads(), "none",
                          0);
    }
    detail::check_equal("batch of out", out.shape().batch, "batch of q", q.shape().batch);
    detail::check_equal("heads of out", out.shape().heads, "heads of q", q.shape().heads);
    detail::check_equal("tokens of out", out.shape().tokens, "tokens of q", q.shape().tokens);
    for (const M& memory : memories_) {
      check_dimension(memory, "dim of q", q.shape().dim);
      detail::check_equal("dim of out", out.shape().dim, "dimension dv", memory.value_dimension());
    }
    out.check_places();
    out.check_apart_from("q", q);
  }

  static void check_dimension(const M& memory, const char* what, Index d) {
    if (const std::optional<Index> due = memory.dimension())
      detail::check_equal(what, d, "dimension d", *due);
  }

  template <class Attend>
  AttentionStatus for_each(const HeadsInput<S>& q, const HeadsOutput<S>& out, const Attend& attend) const {
    AttentionStatus status;
    const Index group = kv_heads() > 0 ? q.shape().heads / kv_heads() : 0;
    for (Index b = 0; b < q.shape().batch; ++b) {
      for (Index h = 0; h < kv_heads(); ++h) {
        status.add(attend(b, h, q.group(b, h * group, group), out.group(b, h * group, group)),
                   (b * q.shape().heads + h * group) * q.shape().tokens);
      }
    }
    return status;
  }

  std::vector<M> empty_;     // (kv_heads)
  std::vector<M> memories_;  // (streams, kv_heads)
  Index streams_ = 0;
};

}  // namespace phiattn::inline PHIATTN_ABI
