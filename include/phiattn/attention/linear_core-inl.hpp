#pragma once

// Included by attention/linear_core.hpp where that is not compiled elsewhere.

#include <phiattn/attention/linear_core.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/product.hpp>

#include <algorithm>

namespace phiattn::inline PHIATTN_ABI::detail {

template <class Scale>
LinearCore<Scale>::LinearCore(Index m, Index dv) : scale_(m) {
  check_at_least("dv", dv, 0);
  sums_ = Matrix<S>::Zero(m, dv);
  normaliser_ = Vector<S>::Zero(padded<S>(m));
}

template <class Scale>
FeatureRows<typename Scale::Scalar> LinearCore<Scale>::room(Workspace::Frame& frame, Index n) const {
  const Index m = spread<S>(features());
  return {Rows<S>(frame.numbers<S>(n * m), n, padded<S>(features()), m), frame.numbers<S>(n)};
}

template <class Scale>
void LinearCore<Scale>::fill(const MapRef<S>& map, Side side, Rows<const S> x, Index position,
                             const FeatureRows<S>& features_of_x) const {
  const Index m = features();
  map.fill(map.map, side, x, position, features_of_x.values.left(m), features_of_x.log_scale);
  if (m == features_of_x.values.cols) return;
  for (Index t = 0; t < x.rows; ++t) {
    std::fill(features_of_x.values.row(t) + m, features_of_x.values.row(t) + features_of_x.values.cols,
              Scale::kPadding);
  }
}

template <class Scale>
void LinearCore<Scale>::add_log_weights(const Tokens<S>& tokens, const FeatureRows<S>& keys) {
  if (!tokens.log_weights) return;
  keys.log_scales() += Eigen::Map<const Vector<S>>(tokens.log_weights, tokens.size());
}

template <class Scale>
void LinearCore<Scale>::append(const MapRef<S>& map, const Tokens<S>& tokens) {
  Workspace::Frame frame;
  const auto keys = room(frame, tokens.size());
  fill(map, Side::keys, tokens.k, tokens.first, keys);
  add_log_weights(tokens, keys);
  scale_.survey(keys);
  scale_.raise(sums_, normaliser_);
  scale_.weigh_keys(keys, normaliser_, Workspace::of_this_thread().ahead);
  transposed_multiply_add<S>(weights(keys), tokens.v, sums());
}

template <class Scale>
void LinearCore<Scale>::fill_queries(const MapRef<S>& map, const Queries<S>& queries,
                                     const FeatureRows<S>& features_of_q) const {
  if (queries.heads == 1 || map.uniform) {  // wherever they stand
    return fill(map, Side::queries, queries.q, queries.first, features_of_q);
  }
  for (Index h = 0; h < queries.heads; ++h) {
    Workspace::Frame frame;
    const auto of_head = room(frame, queries.size());
    fill(map, Side::queries, queries.of_head(h), queries.first, of_head);
    for (Index t = 0; t < queries.size(); ++t) {
      const Index row = queries.heads * t + h;
      std::copy_n(of_head.values.row(t), of_head.values.cols, features_of_q.values.row(row));
      features_of_q.log_scale[row] = of_head.log_scale[t];
    }
  }
}

template <class Scale>
void LinearCore<Scale>::read(const MapRef<S>& map, const Queries<S>& queries, const RowSums<S>& out) const {
  Workspace::Frame frame;
  const auto features_of_q = room(frame, queries.rows());
  fill_queries(map, queries, features_of_q);
  read_weighed(features_of_q, out, Workspace::of_this_thread().ahead);
  finish(map, features_of_q, out);
}

template <class Scale>
void LinearCore<Scale>::advance(const MapRef<S>& map, const Queries<S>& queries, const Tokens<S>& tokens,
                                const RowSums<S>& out) {
  Workspace::Frame frame;
  const Index n = tokens.size(), rows = queries.rows(), heads = queries.heads;
  const auto both = room(frame, n + rows);
  const auto keys = both.middle(0, n), features_of_q = both.middle(n, rows);
  const bool adjacent = queries.q.data == tokens.k.row(n) && queries.q.stride == tokens.k.stride;
  if (map.uniform && adjacent) {
    fill(map, Side::queries, {tokens.k.data, n + rows, tokens.k.cols, tokens.k.stride}, 0, both);
  } else {
    fill(map, Side::keys, tokens.k, tokens.first, keys);
    fill_queries(map, queries, features_of_q);
  }
  add_log_weights(tokens, keys);
  frame.reserve<S>(kBlock * kBlock, 1);
  Prefetch& ahead = Workspace::of_this_thread().ahead;
  for (Index begin = 0; begin < n; begin += kBlock) {
    const Index count = (std::min)(kBlock, n - begin);
    advance_block(features_of_q.middle(heads * begin, heads * count), keys.middle(begin, count),
                  tokens.v.middle(begin, count), out.middle(heads * begin, heads * count), ahead);
  }
  finish(map, features_of_q, out);
}

template <class Scale>
void LinearCore<Scale>::merge(const LinearCore& other) {
  scale_.merge(other.scale_, sums_, normaliser_);
  for (Index i = 0; i < features(); ++i) {
    const S weight = scale_.weight_of(other.scale_, i);
    sums_.row(i) += weight * other.sums_.row(i);
    normaliser_(i) += weight * other.normaliser_(i);
  }
}

template <class Scale>
void LinearCore<Scale>::read_weighed(const FeatureRows<S>& queries, const RowSums<S>& out,
                                     Prefetch& ahead) const {
  scale_.weigh_queries(queries, normaliser_, out.normaliser, ahead);
  multiply<S>(weights(queries), sums(), out.sums);
}

/// One block if it is safe, else as two halves in order. A non-finite value or feature is unsafe: 0 * inf in the zeroed
/// triangle is NaN. One row always is safe.
template <class Scale>
void LinearCore<Scale>::advance_block(const FeatureRows<S>& queries, const FeatureRows<S>& keys,
                                      Rows<const S> values, const RowSums<S>& out, Prefetch& ahead) {
  const Index n = keys.rows(), heads = queries.rows() / n;
  scale_.survey(keys);
  if (n == 1) {
    scale_.raise(sums_, normaliser_);
    scale_.weigh_keys(keys, normaliser_, ahead);
    if (heads > 1) {
      transposed_multiply_add<S>(weights(keys), values, sums());
      return read_weighed(queries, out, ahead);
    }
    // The sums take in a key and are read in the same pass, since they hardly fit in the first-level cache.
    scale_.weigh_queries(queries, normaliser_, out.normaliser, ahead);
    add_and_read<S>(weights(keys), values, weights(queries), sums(), out.sums);
  } else if (all_finite<S>(values) && scale_.admits(queries, keys)) {
    scale_.raise(sums_, normaliser_);
    read_weighed(queries, out, ahead);
    scale_.weigh_keys(keys, normaliser_, ahead);
    add_triangle(queries, keys, values, out);
    transposed_multiply_add<S>(weights(keys), values, sums());
  } else {
    for (const Index begin : {Index{0}, n / 2}) {
      const Index half = begin == 0 ? n / 2 : n - n / 2;
      advance_block(queries.middle(heads * begin, heads * half), keys.middle(begin, half),
                    values.middle(begin, half), out.middle(heads * begin, heads * half), ahead);
    }
  }
}

/// Adds what the rows of a block see of its keys: those beside key t those up to t, a head at a time.
template <class Scale>
void LinearCore<Scale>::add_triangle(const FeatureRows<S>& queries, const FeatureRows<S>& keys,
                                     Rows<const S> values, const RowSums<S>& out) const {
  const Index n = keys.rows(), heads = queries.rows() / n;
  Workspace::Frame frame;
  const Rows<S> products = frame.rows<S>(n, n);
  for (Index h = 0; h < heads; ++h) {
    const auto of_head = [&](Rows<S> rows) {
      return Rows<S>(rows.row(h), n, rows.cols, heads * rows.stride);
    };
    multiply_transposed<S>(of_head(weights(queries)), weights(keys), products, 0);
    for (Index t = 0; t < n; ++t) {
      std::fill(products.row(t) + t + 1, products.row(t) + n, S(0));
      out.normaliser[heads * t + h] += Eigen::Map<const RowVector<S>>(products.row(t), t + 1).sum();
    }
    multiply_add<S>(products, values, of_head(out.sums), 0);
  }
}

template <class Scale>
void LinearCore<Scale>::finish(const MapRef<S>& map, const FeatureRows<S>& queries,
                               const RowSums<S>& out) const {
  std::copy_n(queries.log_scale, out.rows(), out.log_scale);
  if constexpr (Scale::kPositive) {
    for (Index t = 0; t < out.rows(); ++t) {
      if (out.normaliser[t] != 0) continue;
      out.set_nothing(t);
      if (map.never_zero && !scale_.nothing()) out.set_out_of_range(t);
    }
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
