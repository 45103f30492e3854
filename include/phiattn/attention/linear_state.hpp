#pragma once

// The memory of a feature map: linear attention. Next: attention/tiles.hpp.

#include <phiattn/attention/feature_scale.hpp>
#include <phiattn/attention/memory.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace phiattn {

/// All keys and values seen so far, as m x (dv + 1) numbers:
///
///     S_i = sum_j varphi_i(k_j) v_j,   z_i = sum_j varphi_i(k_j),   out = sum_i phi_i(q) S_i / sum_i phi_i(q) z_i
///
/// (Katharopoulos et al. 2020, eq. 9-12), kept under log-scales so that no finite input overflows and, for positive
/// maps, the scaled normaliser is at least 1 (e^-40 inside a causal block): there is no epsilon.
/// Cost: for n tokens 2 n m (2 dv + 2) flops beyond the map's own, and as much again inside causal blocks of
/// chunk ~ dv tokens; O(m dv) memory and O(1) a token, however many there are.
template <FeatureMap Map>
class LinearState {
 public:
  using Scalar = typename Map::Scalar;
  using S = Scalar;

  /// @param dv       columns of the values to come
  /// @param options  scale and chunk; the rest is a matter of the calls
  /// @throws std::invalid_argument  if dv < 0, or on a scale or chunk that is out of range
  LinearState(Map map, Index dv, const AttentionOptions& options = {})
      : map_(std::move(map)),
        root_scale_(detail::root_scale<S>(options, map_.default_scale(map_.dimension()))),
        chunk_(std::min(detail::checked_chunk(options), largest_chunk(map_.feature_dimension()))),
        scale_(map_.feature_dimension()) {
    detail::check_at_least("dv", dv, 0);
    sums_ = Matrix<S>::Zero(map_.feature_dimension(), dv);
    normaliser_ = Vector<S>::Zero(detail::padded<S>(map_.feature_dimension()));
  }

  const Map& map() const { return map_; }
  Index size() const { return size_; }
  Index value_dimension() const { return sums_.cols(); }

  void append(const Input<S>& k, const Input<S>& v) { append(k, v, nullptr); }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>& log_weights) {
    append(k, v, &log_weights);
  }

  Matrix<S> read(const Input<S>& q, Index first = 0) const {
    Matrix<S> out(q.rows(), value_dimension());
    read(q, Output<S>(out), first);
    return out;
  }

  AttentionStatus read(const Input<S>& q, const Output<S>& out, Index first = 0) const {
    detail::check_queries(q, map_.dimension());
    detail::check_output(out, q, value_dimension());
    return read_into(q, first, detail::RowResults<S>(out));
  }

  Partial<S> read_partial(const Input<S>& q, Index first = 0) const {
    detail::check_queries(q, map_.dimension());
    auto partial = Partial<S>::empty(q.rows(), value_dimension());
    read_into(q, first, detail::RowResults<S>(partial));
    return partial;
  }

  Matrix<S> advance(const Input<S>& q, const Input<S>& k, const Input<S>& v) {
    Matrix<S> out(q.rows(), value_dimension());
    advance(q, k, v, Output<S>(out));
    return out;
  }

  AttentionStatus advance(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out) {
    detail::check_queries(q, map_.dimension());
    detail::check_equal("rows of q", q.rows(), "rows of k", k.rows());
    detail::check_keys_and_values(k, v, map_.dimension(), value_dimension());
    detail::check_output(out, q, k, v);
    detail::RowResults<S> results(out);
    for (Index first = 0; first < q.rows(); first += chunk_) {
      const Index n = std::min(chunk_, q.rows() - first);
      load_keys(k, v, nullptr, first, n);
      load_queries(*work_, q, first, n, size_);
      for (Index begin = 0; begin < n; begin += kBlock) {
        advance_block(begin, std::min(kBlock, n - begin), first, results);
      }
      size_ += n;
    }
    return results.status();
  }

  /// Adds the tokens of `other`, a state of the same map, scale and dv.
  void merge(const LinearState& other) {
    detail::check_equal("features of the other state", other.sums_.rows(), "features of this one",
                        sums_.rows());
    detail::check_equal("dv of the other state", other.value_dimension(), "dv of this one",
                        value_dimension());
    if (other.root_scale_ != root_scale_) detail::fail_argument("merge: the states differ in scale");
    scale_.merge(other.scale_, sums_, normaliser_);
    for (Index i = 0; i < sums_.rows(); ++i) {
      const S weight = scale_.weight_of(other.scale_, i);
      sums_.row(i) += weight * other.sums_.row(i);
      normaliser_(i) += weight * other.normaliser_(i);
    }
    size_ += other.size_;
  }

 private:
  /// Rows of one causal block: the triangle inside it costs 2 (m + dv) flops a row and token, the sums want long ones.
  static constexpr Index kBlock = 64;

  /// Scratch for one chunk; grows to the largest seen.
  struct Work {
    Matrix<S> tokens, values, log_weights, queries, keys, products, out;
    Vector<S> query_log_scale, key_log_scale, normaliser;
  };

  /// Rows of features are whole packets, and a packet more where rows would otherwise lie a multiple of 2 KiB apart: all
  /// the numbers of one feature would then share a few lines of the first-level cache.
  void reserve_features(Matrix<S>& features, Index rows) const {
    Index cols = detail::padded<S>(map_.feature_dimension());
    if (cols * Index{sizeof(S)} % 2048 == 0) cols += detail::kPacket<S>;
    detail::reserve(features, rows, cols);
  }

  /// Rows [begin, begin + n) of a chunk's features.
  auto features(Matrix<S>& chunk, Index begin, Index n) const {
    return chunk.block(begin, 0, n, map_.feature_dimension());
  }

  /// The same in whole packets.
  auto padded(Matrix<S>& chunk, Index begin, Index n) const {
    return chunk.block(begin, 0, n, detail::padded<S>(map_.feature_dimension()));
  }

  void fill_padding(Matrix<S>& chunk, Index n) const {
    const Index m = map_.feature_dimension();
    chunk.block(0, m, n, detail::padded<S>(m) - m).setConstant(detail::ScaleOf<Map>::kPadding);
  }

  /// Features of a chunk take at most 16 MiB in float, yet are enough to keep the products busy.
  static Index largest_chunk(Index m) {
    return std::max<Index>(16, (Index{1} << 22) / std::max<Index>(m, 1));
  }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>* log_weights) {
    detail::check_keys_and_values(k, v, map_.dimension(), value_dimension());
    if (log_weights) detail::check_log_weights(*log_weights, k.rows());
    for (Index first = 0; first < k.rows(); first += chunk_) {
      const Index n = std::min(chunk_, k.rows() - first);
      load_keys(k, v, log_weights, first, n);
      scale_.survey(padded(work_->keys, 0, n), work_->key_log_scale.head(n));
      scale_.raise(sums_, normaliser_);
      add_keys(0, n);
      size_ += n;
    }
  }

  void load_keys(const Input<S>& k, const Input<S>& v, const Input<S>* log_weights, Index first, Index n) {
    detail::reserve(work_->tokens, n, map_.dimension());
    detail::reserve(work_->values, n, value_dimension());
    reserve_features(work_->keys, n);
    detail::reserve(work_->key_log_scale, n, 1);
    k.load(first, root_scale_, work_->tokens.topRows(n));
    v.load(first, S(1), work_->values.topRows(n));
    if (log_weights) {
      detail::reserve(work_->log_weights, n, 1);
      detail::load_log_weights<S>(*log_weights, first, work_->log_weights.topRows(n),
                                  work_->tokens.topRows(n), work_->values.topRows(n));
    }
    auto keys = features(work_->keys, 0, n);
    auto log_scale = work_->key_log_scale.head(n);
    if constexpr (LogFeatureMap<Map>) {
      map_.log_key_features(work_->tokens.topRows(n), size_, keys, log_scale);
    } else {
      map_.signed_key_features(work_->tokens.topRows(n), size_, keys, log_scale);
    }
    if (log_weights) log_scale += work_->log_weights.topRows(n);
    fill_padding(work_->keys, n);
  }

  void load_queries(Work& work, const Input<S>& q, Index first, Index n, Index position) const {
    detail::reserve(work.tokens, n, map_.dimension());
    reserve_features(work.queries, n);
    detail::reserve(work.query_log_scale, n, 1);
    detail::reserve(work.normaliser, n, 1);
    detail::reserve(work.out, n, value_dimension());
    q.load(first, root_scale_, work.tokens.topRows(n));
    auto queries = features(work.queries, 0, n);
    auto log_scale = work.query_log_scale.head(n);
    if constexpr (LogFeatureMap<Map>) {
      map_.log_query_features(work.tokens.topRows(n), position, queries, log_scale);
    } else {
      map_.signed_query_features(work.tokens.topRows(n), position, queries, log_scale);
    }
    fill_padding(work.queries, n);
  }

  AttentionStatus read_into(const Input<S>& q, Index position, detail::RowResults<S> results) const {
    position = detail::countable(position);
    work_.with([&](Work& work) {
      for (Index first = 0; first < q.rows(); first += chunk_) {
        const Index n = std::min(chunk_, q.rows() - first);
        load_queries(work, q, first, n, position + first);
        read_rows(work, 0, n);
        results.take(first, work.out.topRows(n), work.normaliser.head(n), work.query_log_scale.head(n),
                     detail::ScaleOf<Map>::kPositive);
      }
    });
    return results.status();
  }

  void weigh_queries(Work& work, Index begin, Index n) const {
    scale_.weigh_queries(padded(work.queries, begin, n), work.query_log_scale.segment(begin, n), normaliser_,
                         work.normaliser.segment(begin, n));
  }

  /// Rows [begin, begin + n) of the loaded chunk against the sums.
  void read_rows(Work& work, Index begin, Index n) const {
    weigh_queries(work, begin, n);
    detail::multiply<S>(features(work.queries, begin, n), sums_, work.out.middleRows(begin, n));
  }

  /// Keys [begin, begin + n) of the loaded chunk, to whose scale the sums have been raised.
  void add_keys(Index begin, Index n) {
    weigh_keys(begin, n);
    add_values(begin, n);
  }

  void weigh_keys(Index begin, Index n) {
    scale_.weigh_keys(padded(work_->keys, begin, n), work_->key_log_scale.segment(begin, n), normaliser_);
  }

  void add_values(Index begin, Index n) {
    detail::transposed_multiply_add<S>(features(work_->keys, begin, n), work_->values.middleRows(begin, n),
                                       sums_);
  }

  /// Rows [begin, begin + n) of the loaded chunk, causally: as one block if it is safe, else as two halves in order.
  /// A non-finite value or feature is unsafe: 0 * inf in the zeroed triangle is NaN. One row always is safe.
  void advance_block(Index begin, Index n, Index first, detail::RowResults<S>& results) {
    const auto a = padded(work_->queries, begin, n);
    const auto b = padded(work_->keys, begin, n);
    const auto v = work_->values.middleRows(begin, n);
    const auto key_log_scale = work_->key_log_scale.segment(begin, n);
    scale_.survey(b, key_log_scale);
    const bool safe = n == 1 || (detail::largest(v.cwiseAbs()) < std::numeric_limits<S>::infinity() &&
                                 scale_.admits(a, b, key_log_scale));
    if (!safe) {
      advance_block(begin, n / 2, first, results);
      advance_block(begin + n / 2, n - n / 2, first, results);
      return;
    }
    scale_.raise(sums_, normaliser_);
    if (n == 1) {
      advance_row(begin);
    } else {
      read_rows(*work_, begin, n);
      weigh_keys(begin, n);
      add_triangle(begin, n);
      add_values(begin, n);
    }
    results.take(first + begin, work_->out.middleRows(begin, n), work_->normaliser.segment(begin, n),
                 work_->query_log_scale.segment(begin, n), detail::ScaleOf<Map>::kPositive);
  }

  /// One row: the sums take in its key and are read in the same pass, since they hardly fit in the first-level cache.
  void advance_row(Index t) {
    weigh_keys(t, 1);
    weigh_queries(*work_, t, 1);
    const auto a = features(work_->queries, t, 1);
    const auto b = features(work_->keys, t, 1);
    detail::add_and_read<S>(b, work_->values.row(t), a, sums_, work_->out.row(t));
  }

  /// Adds what the rows of a block see of its keys: row t those up to t.
  void add_triangle(Index begin, Index n) {
    if (work_->products.rows() < n) work_->products.resize(n, n);
    auto products = work_->products.topLeftCorner(n, n);
    detail::multiply_transposed<S>(features(work_->queries, begin, n), features(work_->keys, begin, n),
                                   products, 0);
    for (Index t = 0; t < n; ++t) {
      products.row(t).tail(n - t - 1).setZero();
      work_->normaliser(begin + t) += products.row(t).head(t + 1).sum();
    }
    detail::multiply_add<S>(products, work_->values.middleRows(begin, n), work_->out.middleRows(begin, n), 0);
  }

  Map map_;
  S root_scale_;
  Index chunk_;
  detail::ScaleOf<Map> scale_;
  Matrix<S> sums_;        // S (m, dv)
  Vector<S> normaliser_;  // z (m)
  Index size_ = 0;
  detail::KeptScratch<Work> work_;
};

}  // namespace phiattn
