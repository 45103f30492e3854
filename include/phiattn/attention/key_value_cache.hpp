#pragma once

// The memory of a kernel: exact attention. Next: attention/attention.hpp.

#include <phiattn/attention/tiles.hpp>
#include <phiattn/core/scratch.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace phiattn {

/// All keys and values themselves: softmax attention's key-value cache, for any kernel.
///
/// The dimension d of the keys is fixed by the first append or advance.
/// Cost: n (d + dv + 1) numbers of memory; reading n_q queries takes 2 n_q n (d + dv) flops.
template <Kernel K>
class KeyValueCache {
 public:
  using Scalar = typename K::Scalar;
  using S = Scalar;

  /// @param dv       columns of the values to come
  /// @param options  scale and chunk; the rest is a matter of the calls
  /// @throws std::invalid_argument  if dv < 0, or on a scale or chunk that is out of range
  KeyValueCache(K kernel, Index dv, const AttentionOptions& options = {})
      : kernel_(std::move(kernel)), options_(options) {
    detail::check_at_least("dv", dv, 0);
    values_.resize(0, dv);
    detail::checked_chunk(options);
    if (options.scale) detail::root_scale<S>(options, 1);
  }

  const K& kernel() const { return kernel_; }
  Index size() const { return size_; }
  Index value_dimension() const { return values_.cols(); }

  void append(const Input<S>& k, const Input<S>& v) { append(k, v, nullptr); }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>& log_weights) {
    append(k, v, &log_weights);
  }

  /// Queries of a kernel have no position: `first` is there for maps.
  Matrix<S> read(const Input<S>& q, Index first = 0) const {
    Matrix<S> out(q.rows(), value_dimension());
    read(q, Output<S>(out), first);
    return out;
  }

  AttentionStatus read(const Input<S>& q, const Output<S>& out, Index /*first*/ = 0) const {
    detail::check_output(out, q, value_dimension());
    return read_into(q, false, detail::RowResults<S>(out));
  }

  Partial<S> read_partial(const Input<S>& q, Index /*first*/ = 0) const {
    auto partial = Partial<S>::empty(q.rows(), value_dimension());
    read_into(q, false, detail::RowResults<S>(partial));
    return partial;
  }

  Matrix<S> advance(const Input<S>& q, const Input<S>& k, const Input<S>& v) {
    Matrix<S> out(q.rows(), value_dimension());
    advance(q, k, v, Output<S>(out));
    return out;
  }

  AttentionStatus advance(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out) {
    detail::check_equal("columns of q", q.cols(), "columns of k", k.cols());
    detail::check_equal("rows of q", q.rows(), "rows of k", k.rows());
    detail::check_output(out, q, k, v);
    append(k, v);
    return read_into(q, true, detail::RowResults<S>(out));
  }

  /// Adds the tokens of `other`, a cache of the same kernel, scale and dv.
  void merge(const KeyValueCache& other) {
    detail::check_equal("dv of the other cache", other.value_dimension(), "dv of this one",
                        value_dimension());
    if (!other.dimension_) return;
    detail::check_equal("dimension d of the other cache", *other.dimension_, "dimension d of this one",
                        dimension_.value_or(*other.dimension_));
    if (other.root_scale(*other.dimension_) != root_scale(*other.dimension_)) {
      detail::fail_argument("merge: the caches differ in scale");
    }
    const Index n = other.size_;
    make_room(n, *other.dimension_);
    keys_.middleRows(size_, n) = other.keys_.topRows(n);
    values_.middleRows(size_, n) = other.values_.topRows(n);
    log_weights_.middleRows(size_, n) = other.log_weights_.topRows(n);
    size_ += n;
  }

 private:
  S root_scale(Index d) const { return detail::root_scale<S>(options_, kernel_.default_scale(d)); }

  void append(const Input<S>& k, const Input<S>& v, const Input<S>* log_weights) {
    detail::check_keys_and_values(k, v, dimension_.value_or(k.cols()), value_dimension());
    if (log_weights) detail::check_log_weights(*log_weights, k.rows());
    const Index n = k.rows();
    make_room(n, k.cols());
    k.load(0, root_scale(k.cols()), keys_.middleRows(size_, n));
    v.load(0, S(1), values_.middleRows(size_, n));
    if (log_weights) {
      detail::load_log_weights<S>(*log_weights, 0, log_weights_.middleRows(size_, n),
                                  keys_.middleRows(size_, n), values_.middleRows(size_, n));
    } else {
      log_weights_.middleRows(size_, n).setZero();
    }
    size_ += n;
  }

  /// Grows by doubling, so that a token costs O(1) on average.
  void make_room(Index n, Index d) {
    dimension_ = d;
    if (keys_.cols() == d && size_ + n <= keys_.rows()) return;
    const Index capacity = std::max(size_ + n, 2 * keys_.rows());
    keys_.conservativeResize(capacity, d);
    values_.conservativeResize(capacity, Eigen::NoChange);
    log_weights_.conservativeResize(capacity, 1);
  }

  /// With `causal`, the last query sees all keys, the one before all but one, and so on.
  AttentionStatus read_into(const Input<S>& q, bool causal, detail::RowResults<S> results) const {
    if (dimension_) detail::check_queries(q, *dimension_);
    const Input<S> keys(keys_.topRows(size_));
    const Input<S> values(values_.topRows(size_));
    const Input<S> log_weights(log_weights_.topRows(size_));
    const detail::TiledAttention<K> attention(kernel_, {keys, values, &log_weights, S(1)},
                                              {size_, causal, size_ - q.rows()}, options_.chunk);
    return scratch_.with([&](detail::ScratchBlock<S>& scratch) {
      return attention.attend(q, dimension_ ? root_scale(*dimension_) : S(1), results, scratch);
    });
  }

  K kernel_;
  AttentionOptions options_;
  std::optional<Index> dimension_;
  Matrix<S> keys_;  // (capacity, d), scaled
  Matrix<S> values_;
  Matrix<S> log_weights_;
  Index size_ = 0;
  detail::KeptScratch<detail::ScratchBlock<S>> scratch_;
};

}  // namespace phiattn
