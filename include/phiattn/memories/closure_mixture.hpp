#pragma once

// Several Gaussian closures, each for the keys around a centre.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/core/abi.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/memories/closures.hpp>
#include <phiattn/memories/codebook.hpp>
#include <phiattn/memories/token_frame.hpp>

namespace phiattn::inline PHIATTN_ABI {

/// G Gaussian closures under one normaliser, G (d^2 + d dv) numbers however many keys there are: each key is added to
/// the closure whose centre is nearest, so that within each the second order that a closure takes is enough,
///
///     exp(log-normaliser) = sum_g exp(log-normaliser_g),   out = sum_g exp(log-normaliser_g - log-normaliser) out_g
///
/// Cost: as GaussianClosure, G times for queries and once for keys; 2 n G d flops to find the centres.
template <detail::ComputeScalar S>
class ClosureMixture : public MemoryBase<ClosureMixture<S>, S> {
 public:
  /// @param centres            (G, d), in the coordinates of the reparametrisation: k_means(r.keys(k), G)
  /// @param reparametrisation  should balance queries and keys, c.then(diagonal_balance(c.queries(q), c.keys(k)))
  /// @param dv                 columns of the values to come
  /// @param options            scale; chunk bounds the blocks
  /// @throws std::invalid_argument  if there are no centres or of another dimension, if dv < 0, or on an option that
  ///                                is out of range
  ClosureMixture(const Input<double>& centres, const Reparametrisation& reparametrisation, Index dv,
                 const ClosureOptions& closure = {}, const AttentionOptions& options = {});

  Index closures() const { return codebook_.size(); }
  Index size() const { return size_; }
  Index dimension() const { return frame_.dimension(); }
  Index value_dimension() const { return dv_; }
  double scale() const { return frame_.scale(); }

  // What MemoryBase works with; see BlockModel.
  void forget_all() {
    closures_ = detail::Closures<S>(closures(), dimension(), dv_, closures_.options());
    size_ = {};
  }
  bool takes_groups() const { return true; }
  Index block_rows() const { return block_rows_; }
  void append_block(const Tokens<S>& tokens);
  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const;
  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out);
  void check_same(const ClosureMixture& other) const;
  void absorb(const ClosureMixture& other);

 private:
  detail::TokenFrame<S> frame_;
  Index block_rows_;
  Index dv_;
  detail::Codebook<S> codebook_;
  detail::Closures<S> closures_;
  detail::Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class ClosureMixture<float>;
extern template class ClosureMixture<double>;
}  // namespace phiattn::inline PHIATTN_ABI
#else
#include <phiattn/memories/closure_mixture-inl.hpp>
#endif
