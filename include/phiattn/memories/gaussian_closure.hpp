#pragma once

// Softmax attention in closed form, if keys were Gaussian. Next: memories/codebook.hpp.

#include <phiattn/core/scratch.hpp>
#include <phiattn/memories/block_memory.hpp>
#include <phiattn/memories/closure_moments.hpp>
#include <phiattn/memories/token_frame.hpp>

namespace phiattn {

namespace detail {

/// Scratch of a closure memory for one block.
template <class S>
struct ClosureBlock {
  Matrix<S> queries, keys, moved;
  Vector<S> log_factors, log_weights;
  ClosureWork<S> moments;

  ConstMatrixRef<S> load_queries(const TokenFrame<S>& frame, const ConstMatrixRef<S>& q) {
    const Index n = q.rows();
    reserve(queries, n, q.cols());
    reserve(moved, n, q.cols());
    reserve(log_factors, n, 1);
    frame.queries(q, moved.topRows(n), queries.topRows(n), log_factors.head(n));
    return queries.topRows(n);
  }

  ClosureTokens<S> load_keys(const TokenFrame<S>& frame, const TokenRows<S>& tokens) {
    const Index n = tokens.size();
    reserve(keys, n, tokens.k.cols());
    reserve(moved, n, tokens.k.cols());
    reserve(log_weights, n, 1);
    log_weights.head(n) = tokens.log_weights;
    frame.keys(tokens.k, moved.topRows(n), keys.topRows(n), log_weights.head(n));
    return {keys.topRows(n), tokens.v, log_weights.head(n), tokens.log_weights};
  }

  /// From the frame's scores to the caller's.
  void finish(PartialRows<S> results) const {
    for (Index t = 0; t < results.out.rows(); ++t) {
      if (results.log_normaliser(t) != kNothing<S>) results.log_normaliser(t) += log_factors(t);
    }
  }
};

}  // namespace detail

/// All keys and values as one Gaussian, d^2 + d dv numbers however many there are. With the queries and keys of a
/// reparametrisation, weights w_j = exp(log-weight of key j), x = q' scale, and
///
///     Z = sum w,  mu = sum w k' / Z,  nu = sum w v / Z,  S = sum w k' k'^T / Z - mu mu^T,  K = sum w v k'^T / Z - nu mu^T
///     sigma^2 = x^T S x,   tau = min(1, c sqrt(2 ln N) / sigma)
///     log-normaliser = ln Z + x . mu + tau sigma^2 - tau^2 sigma^2 / 2,   out = nu + tau K x
///
/// For tau = 1 this is the second-order cumulant expansion of ln sum_j w_j exp(x . k'_j) and its derivative in the
/// values: exact for keys that are jointly Gaussian with their values as their number N grows. N scores of deviation
/// sigma cannot hold more than a maximum near sigma sqrt(2 ln N): beyond that temperature the sum freezes, as in
/// Derrida's random-energy model (1981), and the expansion is followed along its tangent at tau. Without that cap it
/// explodes on trained heads.
///
/// Best for what is far away, behind an exact window: Windowed(64, GaussianClosure<float>(d, dv)).
/// Cost: for n tokens 2 n (2 d^2 + 2 d dv) flops and as much inside blocks of d tokens; O(d^2 + d dv) memory, and time
/// a token.
template <detail::ComputeScalar S>
class GaussianClosure : public detail::BlockMemory<GaussianClosure<S>, S> {
 public:
  /// @param reparametrisation  its log-weights make the expansion one about the mean query: centring(q, k)
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if dv < 0, or on an option that is out of range
  GaussianClosure(const Reparametrisation& reparametrisation, Index dv, const ClosureOptions& closure = {},
                  const AttentionOptions& options = {})
      : frame_(reparametrisation, options),
        block_rows_(detail::checked_block_rows(options)),
        dv_(detail::checked_dv(dv)),
        moments_(frame_.dimension(), dv, detail::checked(closure)) {}

  /// Of queries and keys as they come.
  /// @throws std::invalid_argument  if d < 1 too
  GaussianClosure(Index d, Index dv, const ClosureOptions& closure = {}, const AttentionOptions& options = {})
      : GaussianClosure(detail::TokenFrame<S>::identity(d), dv, closure, options) {}

  Index size() const { return size_; }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  /// Adds the tokens of `other`, a closure of the same reparametrisation, scale, dv and options.
  void merge(const GaussianClosure& other) {
    frame_.check_same(other.frame_);
    detail::check_equal("dv of the other closure", other.dv_, "dv of this one", dv_);
    moments_.merge(other.moments_);
    size_ += other.size_;
  }

  // What Windowed drives; see detail::BlockMemory.
  Index block_rows() const { return block_rows_; }
  void check_dimension(const char* what, Index d) const { frame_.check_dimension(what, d); }

  void append_block(const detail::TokenRows<S>& tokens) {
    moments_.append(block_->load_keys(frame_, tokens), block_->moments);
    size_ += tokens.size();
  }

  AttentionStatus read_block(const ConstMatrixRef<S>& q, Index /*first*/,
                             detail::PartialRows<S> results) const {
    return block_.with([&](detail::ClosureBlock<S>& block) {
      const AttentionStatus status = moments_.read(block.load_queries(frame_, q), results, block.moments);
      block.finish(results);
      return status;
    });
  }

  AttentionStatus advance_block(const ConstMatrixRef<S>& q, const detail::TokenRows<S>& tokens,
                                detail::PartialRows<S> results) {
    const auto keys = block_->load_keys(frame_, tokens);
    const AttentionStatus status =
        moments_.advance(block_->load_queries(frame_, q), keys, {}, results, block_->moments);
    block_->finish(results);
    size_ += tokens.size();
    return status;
  }

 private:
  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  detail::ClosureMoments<S> moments_;
  Index size_ = 0;
  detail::KeptScratch<detail::ClosureBlock<S>> block_;
};

static_assert(Memory<GaussianClosure<float>> && Memory<GaussianClosure<double>>);

}  // namespace phiattn
