#pragma once

// What a linear state holds, whatever map the features come from: compiled once for a scalar. Next:
// attention/linear_state.hpp.

#include <phiattn/attention/feature_scale.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/prefetch.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>

namespace phiattn::detail {

/// Tokens as a map hands them over: features (n, m), in rows of whole packets, and log_scale (n).
template <class S>
struct FeatureRows {
  MatrixRef<S> features;
  VectorRef<S> log_scale;

  Index rows() const { return features.rows(); }
  FeatureRows middle(Index begin, Index n) {
    return {features.middleRows(begin, n), log_scale.segment(begin, n)};
  }
};

/// Rows of attention before the division: out = sums / normaliser, and the normaliser in full is times
/// exp(log_scale), which the queries keep.
template <class S>
struct ReadRows {
  MatrixRef<S> sums;        // (n, dv)
  VectorRef<S> normaliser;  // (n)

  ReadRows middle(Index begin, Index n) { return {sums.middleRows(begin, n), normaliser.segment(begin, n)}; }
};

/// S_i = sum_j varphi_i(k_j) v_j and z_i = sum_j varphi_i(k_j) under their log-scale. Features are turned into weights
/// in place; meanwhile `ahead` fetches what comes next.
template <class Scale>
class FeatureSums {
 public:
  using S = typename Scale::Scalar;

  FeatureSums(Index m, Index dv) : scale_(m) {
    check_at_least("dv", dv, 0);
    sums_ = Matrix<S>::Zero(m, dv);
    normaliser_ = Vector<S>::Zero(padded<S>(m));
  }

  Index features() const { return sums_.rows(); }
  Index value_dimension() const { return sums_.cols(); }

  void add(FeatureRows<S> keys, const ConstMatrixRef<S>& values, Prefetch& ahead) {
    scale_.survey(keys.features, keys.log_scale);
    scale_.raise(sums_, normaliser_);
    weigh(keys, ahead);
    add_values(keys, values);
  }

  void read(FeatureRows<S> queries, ReadRows<S> out, Prefetch& ahead) const {
    weigh(queries, out, ahead);
    multiply<S>(weights(queries), sums_, out.sums);
  }

  /// Reads and adds by turns: row t sees what was there and the keys up to its own.
  void advance(FeatureRows<S> queries, FeatureRows<S> keys, const ConstMatrixRef<S>& values, ReadRows<S> out,
               Prefetch& ahead) {
    for (Index begin = 0; begin < keys.rows(); begin += kBlock) {
      const Index n = std::min(kBlock, keys.rows() - begin);
      advance_block(queries.middle(begin, n), keys.middle(begin, n), values.middleRows(begin, n),
                    out.middle(begin, n), ahead);
    }
  }

  void merge(const FeatureSums& other) {
    scale_.merge(other.scale_, sums_, normaliser_);
    for (Index i = 0; i < features(); ++i) {
      const S weight = scale_.weight_of(other.scale_, i);
      sums_.row(i) += weight * other.sums_.row(i);
      normaliser_(i) += weight * other.normaliser_(i);
    }
  }

 private:
  /// Rows of one causal block: the triangle inside it costs 2 (m + dv) flops a row and token, the sums want long ones.
  static constexpr Index kBlock = 48;

  auto weights(const FeatureRows<S>& tokens) const { return tokens.features.leftCols(features()); }

  void weigh(FeatureRows<S>& keys, Prefetch& ahead) {
    scale_.weigh_keys(keys.features, keys.log_scale, normaliser_, ahead);
  }
  void weigh(FeatureRows<S>& queries, ReadRows<S>& out, Prefetch& ahead) const {
    scale_.weigh_queries(queries.features, queries.log_scale, normaliser_, out.normaliser, ahead);
  }
  void add_values(const FeatureRows<S>& keys, const ConstMatrixRef<S>& values) {
    transposed_multiply_add<S>(weights(keys), values, sums_);
  }

  /// One block if it is safe, else as two halves in order. A non-finite value or feature is unsafe: 0 * inf in the
  /// zeroed triangle is NaN. One row always is safe.
  void advance_block(FeatureRows<S> queries, FeatureRows<S> keys, const ConstMatrixRef<S>& values,
                     ReadRows<S> out, Prefetch& ahead) {
    const Index n = keys.rows();
    scale_.survey(keys.features, keys.log_scale);
    if (n == 1) {
      scale_.raise(sums_, normaliser_);
      advance_row(queries, keys, values, out, ahead);
    } else if (all_finite<S>(values) && scale_.admits(queries.features, keys.features, keys.log_scale)) {
      scale_.raise(sums_, normaliser_);
      read(queries, out, ahead);
      weigh(keys, ahead);
      add_triangle(queries, keys, values, out);
      add_values(keys, values);
    } else {
      for (const Index begin : {Index{0}, n / 2}) {
        const Index half = begin == 0 ? n / 2 : n - n / 2;
        advance_block(queries.middle(begin, half), keys.middle(begin, half), values.middleRows(begin, half),
                      out.middle(begin, half), ahead);
      }
    }
  }

  /// The sums take in a key and are read in the same pass, since they hardly fit in the first-level cache.
  void advance_row(FeatureRows<S>& query, FeatureRows<S>& key, const ConstMatrixRef<S>& value,
                   ReadRows<S>& out, Prefetch& ahead) {
    weigh(key, ahead);
    weigh(query, out, ahead);
    add_and_read<S>(weights(key), value, weights(query), sums_, out.sums);
  }

  /// Adds what the rows of a block see of its keys: row t those up to t.
  void add_triangle(const FeatureRows<S>& queries, const FeatureRows<S>& keys,
                    const ConstMatrixRef<S>& values, ReadRows<S>& out) const {
    const Index n = keys.rows();
    with_scratch<S>(n, n, [&](Eigen::Map<Matrix<S>> products) {
      multiply_transposed<S>(weights(queries), weights(keys), products, 0);
      for (Index t = 0; t < n; ++t) {
        products.row(t).tail(n - t - 1).setZero();
        out.normaliser(t) += products.row(t).head(t + 1).sum();
      }
      multiply_add<S>(products, values, out.sums, 0);
    });
  }

  Scale scale_;
  Matrix<S> sums_;        // S (m, dv)
  Vector<S> normaliser_;  // z (m), in whole packets
};

}  // namespace phiattn::detail
