#pragma once

// The memory of a feature map: linear attention. Next: attention/tiles.hpp.

#include <phiattn/attention/feature_sums.hpp>
#include <phiattn/attention/memory.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>
#include <utility>

namespace phiattn {

/// All keys and values seen so far, as m x (dv + 1) numbers:
///
///     S_i = sum_j varphi_i(k_j) v_j,   z_i = sum_j varphi_i(k_j),   out = sum_i phi_i(q) S_i / sum_i phi_i(q) z_i
///
/// (Katharopoulos et al. 2020, eq. 9-12), kept under log-scales so that no finite input overflows and, for positive
/// maps, the scaled normaliser is at least 1 (e^-40 inside a causal block): there is no epsilon.
/// Cost: for n tokens 2 n m (2 dv + 2) flops beyond the map's own, about 75 n (m + dv) more inside causal blocks; O(m dv)
/// memory and O(1) a token, however many there are.
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
        sums_(map_.feature_dimension(), dv) {}

  const Map& map() const { return map_; }
  Index size() const { return size_; }
  Index value_dimension() const { return sums_.value_dimension(); }

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
      Chunk chunk = cut(*scratch_, 2 * n, n);
      k.load(first, root_scale_, chunk.tokens.topRows(n));
      q.load(first, root_scale_, chunk.tokens.bottomRows(n));
      if constexpr (detail::UniformMap<Map>) {
        fill(chunk, 0, 2 * n, Side::queries, 0);
      } else {
        fill(chunk, 0, n, Side::keys, size_);
        fill(chunk, n, n, Side::queries, size_);
      }
      detail::Prefetch ahead({k.span(first + n, chunk_), q.span(first + n, chunk_), v.span(first + n, chunk_),
                              results.span(first, n)});
      const auto queries = features(chunk, n, n);
      v.with_rows(first, S(1), chunk.values, [&](const ConstMatrixRef<S>& values) {
        sums_.advance(queries, features(chunk, 0, n), values, {chunk.sums, chunk.normaliser}, ahead);
      });
      results.take(first, chunk.sums, chunk.normaliser, queries.log_scale, Scale::kPositive);
      size_ += n;
    }
    return results.status();
  }

  /// Adds the tokens of `other`, a state of the same map, scale and dv.
  void merge(const LinearState& other) {
    detail::check_equal("features of the other state", other.sums_.features(), "features of this one",
                        sums_.features());
    detail::check_equal("dv of the other state", other.value_dimension(), "dv of this one",
                        value_dimension());
    if (other.root_scale_ != root_scale_) detail::fail_argument("merge: the states differ in scale");
    sums_.merge(other.sums_);
    size_ += other.size_;
  }

 private:
  using Scale = detail::ScaleOf<Map>;

  /// Tokens and their features, and the values or results of `rows` of them.
  struct Chunk {
    Eigen::Map<Matrix<S>> tokens, features, values, log_weights, sums;
    Eigen::Map<Vector<S>> normaliser, log_scale;
  };

  Chunk cut(detail::ScratchBlock<S>& block, Index tokens, Index rows) const {
    const Index m = detail::spread<S>(map_.feature_dimension());
    const Index dv = value_dimension();
    return block.cut([&](detail::ScratchBlock<S>& from) {
      return Chunk{from.matrix(tokens, map_.dimension()),
                   from.matrix(tokens, m),
                   from.matrix(rows, dv),
                   from.matrix(rows, 1),
                   from.matrix(rows, dv),
                   from.vector(rows),
                   from.vector(tokens)};
    });
  }

  /// Features of a chunk take at most 16 MiB in float, yet are enough to keep the products busy.
  static Index largest_chunk(Index m) {
    return std::max<Index>(16, (Index{1} << 22) / std::max<Index>(m, 1));
  }

  detail::FeatureRows<S> features(Chunk& chunk, Index begin, Index n) const {
    return {chunk.features.block(begin, 0, n, detail::padded<S>(map_.feature_dimension())),
            chunk.log_scale.segment(begin, n)};
  }

  enum class Side { queries, keys };

  /// Features of loaded tokens [begin, begin + n), the first of them at `position`.
  void fill(Chunk& chunk, Index begin, Index n, Side side, Index position) const {
    const Index m = map_.feature_dimension();
    const auto tokens = chunk.tokens.middleRows(begin, n);
    auto rows = chunk.features.middleRows(begin, n);
    auto features = rows.leftCols(m);
    auto log_scale = chunk.log_scale.segment(begin, n);
    if constexpr (LogFeatureMap<Map>) {
      if (side == Side::keys) {
        map_.log_key_features(tokens, position, features, log_scale);
      } else {
        map_.log_query_features(tokens, position, features, log_scale);
      }
    } else {
      if (side == Side::keys) {
        map_.signed_key_features(tokens, position, features, log_scale);
      } else {
        map_.signed_query_features(tokens, position, features, log_scale);
      }
    }
    if (const Index more = detail::padded<S>(m) - m; more > 0) {
      rows.middleCols(m, more).setConstant(Scale::kPadding);
    }
  }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>* log_weights) {
    detail::check_keys_and_values(k, v, map_.dimension(), value_dimension());
    if (log_weights) detail::check_log_weights(*log_weights, k.rows());
    for (Index first = 0; first < k.rows(); first += chunk_) {
      const Index n = std::min(chunk_, k.rows() - first);
      Chunk chunk = cut(*scratch_, n, n);
      k.load(first, root_scale_, chunk.tokens);
      const auto add = [&](const ConstMatrixRef<S>& values) {
        fill(chunk, 0, n, Side::keys, size_);
        if (log_weights) chunk.log_scale += chunk.log_weights;
        detail::Prefetch ahead({k.span(first + n, chunk_), v.span(first + n, chunk_)});
        sums_.add(features(chunk, 0, n), values, ahead);
      };
      if (log_weights) {
        v.load(first, S(1), chunk.values);
        detail::load_log_weights<S>(*log_weights, first, chunk.log_weights, chunk.tokens, chunk.values);
        add(chunk.values);
      } else {
        v.with_rows(first, S(1), chunk.values, add);
      }
      size_ += n;
    }
  }

  AttentionStatus read_into(const Input<S>& q, Index position, detail::RowResults<S> results) const {
    position = detail::countable(position);
    scratch_.with([&](detail::ScratchBlock<S>& scratch) {
      for (Index first = 0; first < q.rows(); first += chunk_) {
        const Index n = std::min(chunk_, q.rows() - first);
        Chunk chunk = cut(scratch, n, n);
        q.load(first, root_scale_, chunk.tokens);
        fill(chunk, 0, n, Side::queries, position + first);
        detail::Prefetch ahead({q.span(first + n, chunk_), results.span(first, n)});
        sums_.read(features(chunk, 0, n), {chunk.sums, chunk.normaliser}, ahead);
        results.take(first, chunk.sums, chunk.normaliser, chunk.log_scale, Scale::kPositive);
      }
    });
    return results.status();
  }

  Map map_;
  S root_scale_;
  Index chunk_;
  detail::FeatureSums<Scale> sums_;
  Index size_ = 0;
  detail::KeptScratch<detail::ScratchBlock<S>> scratch_;
};

}  // namespace phiattn
