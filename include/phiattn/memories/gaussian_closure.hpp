#pragma once

// Softmax attention in closed form, if keys were Gaussian.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/core/abi.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/memories/closures.hpp>
#include <phiattn/memories/token_frame.hpp>

namespace phiattn::inline PHIATTN_ABI {

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
class GaussianClosure : public MemoryBase<GaussianClosure<S>, S> {
 public:
  /// @param reparametrisation  its log-weights make the expansion one about the mean query: centring(q, k)
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if dv < 0, or on an option that is out of range
  GaussianClosure(const Reparametrisation& reparametrisation, Index dv, const ClosureOptions& closure = {},
                  const AttentionOptions& options = {});

  /// Of queries and keys as they come.
  /// @throws std::invalid_argument  if d < 1 too
  GaussianClosure(Index d, Index dv, const ClosureOptions& closure = {}, const AttentionOptions& options = {})
      : GaussianClosure(detail::TokenFrame<S>::identity(d), dv, closure, options) {}

  Index size() const { return size_; }
  Index dimension() const { return frame_.dimension(); }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  // What MemoryBase works with; see BlockModel.
  void forget_all() {
    closure_ = detail::Closures<S>(1, dimension(), dv_, closure_.options());
    size_ = {};
  }
  bool takes_groups() const { return true; }
  Index block_rows() const { return block_rows_; }
  void append_block(const Tokens<S>& tokens);
  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const;
  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out);
  void check_same(const GaussianClosure& other) const;
  void absorb(const GaussianClosure& other);

 private:
  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  detail::Closures<S> closure_;  // one
  detail::Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class GaussianClosure<float>;
extern template class GaussianClosure<double>;
}  // namespace phiattn::inline PHIATTN_ABI
#else
#include <phiattn/memories/gaussian_closure-inl.hpp>
#endif
