#pragma once

// What a linear state holds, whatever map the features come from: compiled once for a scalar and kind.

#include <phiattn/attention/feature_scale.hpp>
#include <phiattn/attention/map_ref.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/tokens.hpp>
#include <phiattn/core/abi.hpp>

#include <type_traits>

namespace phiattn::inline PHIATTN_ABI::detail {

/// S_i = sum_j varphi_i(k_j) v_j and z_i = sum_j varphi_i(k_j) under their log-scale.
template <class Scale>
class LinearCore {
 public:
  using S = typename Scale::Scalar;

  LinearCore(Index m, Index dv);

  Index features() const { return sums_.rows(); }
  Index value_dimension() const { return sums_.cols(); }

  void append(const MapRef<S>& map, const Tokens<S>& tokens);
  void read(const MapRef<S>& map, const Queries<S>& queries, const RowSums<S>& out) const;
  /// Reads and adds by turns: row t sees what was there and the keys up to its own.
  void advance(const MapRef<S>& map, const Queries<S>& queries, const Tokens<S>& tokens,
               const RowSums<S>& out);
  void merge(const LinearCore& other);

 private:
  /// Rows of one causal block: the triangle inside it costs 2 (m + dv) flops a row and token, the sums want long ones.
  static constexpr Index kBlock = 48;

  /// Room for the features of n tokens.
  FeatureRows<S> room(Workspace::Frame& frame, Index n) const;
  void fill(const MapRef<S>& map, Side side, Rows<const S> x, Index position,
            const FeatureRows<S>& features) const;
  /// Of a group of heads: those of a token side by side.
  void fill_queries(const MapRef<S>& map, const Queries<S>& queries, const FeatureRows<S>& features) const;
  static void add_log_weights(const Tokens<S>& tokens, const FeatureRows<S>& keys);

  Rows<S> weights(const FeatureRows<S>& tokens) const { return tokens.values.left(features()); }
  Rows<S> sums() { return sums_; }
  Rows<const S> sums() const { return sums_; }

  void read_weighed(const FeatureRows<S>& queries, const RowSums<S>& out, Prefetch& ahead) const;
  void advance_block(const FeatureRows<S>& queries, const FeatureRows<S>& keys, Rows<const S> values,
                     const RowSums<S>& out, Prefetch& ahead);
  void add_triangle(const FeatureRows<S>& queries, const FeatureRows<S>& keys, Rows<const S> values,
                    const RowSums<S>& out) const;
  /// Hands the log-scales over; rows without a key in common say so.
  void finish(const MapRef<S>& map, const FeatureRows<S>& queries, const RowSums<S>& out) const;

  Scale scale_;
  Matrix<S> sums_;        // S (m, dv)
  Vector<S> normaliser_;  // z (m), in whole packets
};

template <FeatureMap Map>
using LinearCoreOf = LinearCore<std::conditional_t<LogFeatureMap<Map>, PerFeatureScale<typename Map::Scalar>,
                                                   PerStateScale<typename Map::Scalar>>>;

}  // namespace phiattn::inline PHIATTN_ABI::detail

#define PHIATTN_LINEAR_INSTANCES(prefix, S)             \
  prefix template class LinearCore<PerFeatureScale<S>>; \
  prefix template class LinearCore<PerStateScale<S>>;

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
PHIATTN_LINEAR_INSTANCES(extern, float)
PHIATTN_LINEAR_INSTANCES(extern, double)
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/attention/linear_core-inl.hpp>
#endif
