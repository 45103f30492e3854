#pragma once

// What memories that work block by block share: the outside of the memory concept. Next: memories/token_frame.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/memories/token_rows.hpp>

#include <algorithm>
#include <concepts>

namespace phiattn {
namespace detail {

/// A far memory that Windowed can drive in blocks; any other is driven token by token.
template <class M>
concept DrivenInBlocks = requires(M memory, const M& other, ConstMatrixRef<typename M::Scalar> q, Index first,
                                  const TokenRows<typename M::Scalar>& tokens,
                                  PartialRows<typename M::Scalar> results) {
  memory.append_block(tokens);
  { other.read_block(q, first, results) } -> std::same_as<AttentionStatus>;
  { memory.advance_block(q, tokens, results) } -> std::same_as<AttentionStatus>;
};

/// Rows at which products are as fast as they get, while what a block costs by its square stays small.
inline constexpr Index kBlockRows = 64;

inline Index checked_block_rows(const AttentionOptions& options) {
  return std::min(checked_chunk(options), kBlockRows);
}

inline Index checked_dv(Index dv) {
  check_at_least("dv", dv, 0);
  return dv;
}

/// The memory concept on top of three functions of Derived over at most block_rows() rows:
///
///     append_block(tokens)                             add tokens
///     read_block(q, first, results) const              attend to all it holds
///     advance_block(q, tokens, results)                row t of q sees the past and the tokens <= t
///
/// and of check_dimension(what, d), size() and value_dimension(). They check nothing themselves.
template <class Derived, ComputeScalar S>
class BlockMemory {
 public:
  using Scalar = S;

  void append(const Input<S>& k, const Input<S>& v) { append(k, v, nullptr); }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>& log_weights) {
    check_log_weights(log_weights, k.rows());
    append(k, v, &log_weights);
  }

  Matrix<S> read(const Input<S>& q, Index first = 0) const {
    Matrix<S> out(q.rows(), self().value_dimension());
    read(q, Output<S>(out), first);
    return out;
  }

  AttentionStatus read(const Input<S>& q, const Output<S>& out, Index first = 0) const {
    self().check_dimension("columns of q", q.cols());
    check_output(out, q, self().value_dimension());
    return read_into(q, first, [&](Index row, const PartialRows<S>& rows) { out.store(row, rows.out); });
  }

  Partial<S> read_partial(const Input<S>& q, Index first = 0) const {
    self().check_dimension("columns of q", q.cols());
    auto partial = Partial<S>::empty(q.rows(), self().value_dimension());
    read_into(q, first, [&](Index row, const PartialRows<S>& rows) {
      const Index n = rows.out.rows();
      partial.out.middleRows(row, n) = rows.out;
      for (Index i = 0; i < n; ++i) {
        if (rows.log_normaliser(i) != kNothing<S>) partial.log_normaliser(row + i) = rows.log_normaliser(i);
        if (rows.sign(i) < 0) partial.sign(row + i) = S(-1);
      }
    });
    return partial;
  }

  Matrix<S> advance(const Input<S>& q, const Input<S>& k, const Input<S>& v) {
    Matrix<S> out(q.rows(), self().value_dimension());
    advance(q, k, v, Output<S>(out));
    return out;
  }

  AttentionStatus advance(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out) {
    check_equal("columns of q", q.cols(), "columns of k", k.cols());
    check_equal("rows of q", q.rows(), "rows of k", k.rows());
    self().check_dimension("columns of k", k.cols());
    check_keys_and_values(k, v, k.cols(), self().value_dimension());
    check_output(out, q, k, v);
    AttentionStatus status;
    for (Index first = 0; first < q.rows(); first += self().block_rows()) {
      const Index n = std::min(self().block_rows(), q.rows() - first);
      const auto tokens = buffers_->load_tokens(k, v, nullptr, first, n);
      const auto results = buffers_->results(n, v.cols());
      status.add(self().advance_block(buffers_->load_queries(q, first, n), tokens, results), first);
      out.store(first, results.out);
    }
    return status;
  }

 protected:
  ~BlockMemory() = default;
  BlockMemory() = default;
  BlockMemory(const BlockMemory&) = default;
  BlockMemory& operator=(const BlockMemory&) = default;
  BlockMemory(BlockMemory&&) noexcept = default;
  BlockMemory& operator=(BlockMemory&&) noexcept = default;

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>* log_weights) {
    self().check_dimension("columns of k", k.cols());
    check_keys_and_values(k, v, k.cols(), self().value_dimension());
    for (Index first = 0; first < k.rows(); first += self().block_rows()) {
      const Index n = std::min(self().block_rows(), k.rows() - first);
      self().append_block(buffers_->load_tokens(k, v, log_weights, first, n));
    }
  }

  template <class Store>
  AttentionStatus read_into(const Input<S>& q, Index position, const Store& store) const {
    AttentionStatus status;
    buffers_.with([&](BlockBuffers<S>& buffers) {
      for (Index first = 0; first < q.rows(); first += self().block_rows()) {
        const Index n = std::min(self().block_rows(), q.rows() - first);
        const auto results = buffers.results(n, self().value_dimension());
        status.add(self().read_block(buffers.load_queries(q, first, n), position + first, results), first);
        store(first, results);
      }
    });
    return status;
  }

  KeptScratch<BlockBuffers<S>> buffers_;
};

}  // namespace detail
}  // namespace phiattn
