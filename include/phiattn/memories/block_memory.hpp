#pragma once

// What memories that work block by block share: the outside of the memory concept. Next: memories/token_frame.hpp.

#include <phiattn/attention/memory.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>

namespace phiattn {
namespace detail {

/// Rows of keys and values as they came, unscaled. A key of log-weight -inf comes with zeros.
template <class S>
struct TokenRows {
  ConstMatrixRef<S> k, v;
  ConstVectorRef<S> log_weights;

  Index size() const { return k.rows(); }
  TokenRows slice(Index first, Index n) const {
    return {k.middleRows(first, n), v.middleRows(first, n), log_weights.segment(first, n)};
  }
};

/// Where the rows of a block of queries go: a Partial that someone else owns. A row over no keys has
/// log_normaliser kNothing; the sign of a normaliser that vanished is 0.
template <class S>
struct PartialRows {
  MatrixRef<S> out;
  VectorRef<S> log_normaliser, sign;

  PartialRows slice(Index first, Index n) {
    return {out.middleRows(first, n), log_normaliser.segment(first, n), sign.segment(first, n)};
  }
  void set_nothing() {
    out.setZero();
    log_normaliser.setConstant(kNothing<S>);
    sign.setOnes();
  }
};

/// a <- combine(a, b), row by row.
template <class S>
void combine_rows(PartialRows<S> a, const PartialRows<S>& b) {
  for (Index i = 0; i < a.out.rows(); ++i) {
    const S log_a = a.log_normaliser(i);
    const S log_b = b.log_normaliser(i);
    if (log_b == kNothing<S>) continue;
    if (log_a == kNothing<S>) {
      a.out.row(i) = b.out.row(i);
      a.log_normaliser(i) = log_b;
      a.sign(i) = b.sign(i);
      continue;
    }
    const S largest = std::max(log_a, log_b);
    const S weight_a = a.sign(i) * flushed_exp(log_a - largest);
    const S weight_b = b.sign(i) * flushed_exp(log_b - largest);
    const S sum = weight_a + weight_b;
    a.out.row(i) = (weight_a / sum) * a.out.row(i) + (weight_b / sum) * b.out.row(i);
    a.log_normaliser(i) = largest + std::log(std::abs(sum));
    a.sign(i) = sum < 0 ? S(-1) : sum == 0 ? S(0) : S(1);
  }
}

/// Scratch that copies do not share: they start without.
template <class T>
struct Scratch : T {
  Scratch() = default;
  Scratch(const Scratch&) : T() {}
  Scratch& operator=(const Scratch&) { return *this; }
  Scratch(Scratch&&) noexcept = default;
  Scratch& operator=(Scratch&&) noexcept = default;
  ~Scratch() = default;
};

/// Makes room for (rows, cols) without giving any up.
template <class M>
void reserve(M& matrix, Index rows, Index cols) {
  if (matrix.rows() < rows || matrix.cols() != cols) matrix.resize(std::max(rows, matrix.rows()), cols);
}

/// `numbers` as a (rows, cols) matrix, grown if need be. Its layout, and so what vectorised functions round, does not
/// depend on what it was before.
template <class S>
Eigen::Map<Matrix<S>> shaped(Vector<S>& numbers, Index rows, Index cols) {
  if (numbers.size() < rows * cols) numbers.resize(rows * cols);
  return {numbers.data(), rows, cols};
}

/// A block of queries and keys in the compute type, and its results.
template <class S>
struct BlockBuffers {
  Matrix<S> q, k, v, out;
  Vector<S> log_weights, log_normaliser, sign;

  TokenRows<S> load_tokens(const Input<S>& keys, const Input<S>& values, const Input<S>* weights, Index first,
                           Index n) {
    reserve(k, n, keys.cols());
    reserve(v, n, values.cols());
    reserve(log_weights, n, 1);
    keys.load(first, S(1), k.topRows(n));
    values.load(first, S(1), v.topRows(n));
    if (weights) {
      Eigen::Map<Matrix<S>> column(log_weights.data(), n, 1);
      load_log_weights<S>(*weights, first, column, k.topRows(n), v.topRows(n));
    } else {
      log_weights.head(n).setZero();
    }
    return {k.topRows(n), v.topRows(n), log_weights.head(n)};
  }

  ConstMatrixRef<S> load_queries(const Input<S>& queries, Index first, Index n) {
    reserve(q, n, queries.cols());
    queries.load(first, S(1), q.topRows(n));
    return q.topRows(n);
  }

  PartialRows<S> results(Index n, Index dv) {
    reserve(out, n, dv);
    reserve(log_normaliser, n, 1);
    reserve(sign, n, 1);
    return {out.topRows(n), log_normaliser.head(n), sign.head(n)};
  }
};

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
      const auto tokens = buffers_.load_tokens(k, v, nullptr, first, n);
      const auto results = buffers_.results(n, v.cols());
      status.add(self().advance_block(buffers_.load_queries(q, first, n), tokens, results), first);
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
      self().append_block(buffers_.load_tokens(k, v, log_weights, first, n));
    }
  }

  template <class Store>
  AttentionStatus read_into(const Input<S>& q, Index position, const Store& store) const {
    BlockBuffers<S> buffers;
    AttentionStatus status;
    for (Index first = 0; first < q.rows(); first += self().block_rows()) {
      const Index n = std::min(self().block_rows(), q.rows() - first);
      const auto results = buffers.results(n, self().value_dimension());
      status.add(self().read_block(buffers.load_queries(q, first, n), position + first, results), first);
      store(first, results);
    }
    return status;
  }

  Scratch<BlockBuffers<S>> buffers_;
};

}  // namespace detail
}  // namespace phiattn
