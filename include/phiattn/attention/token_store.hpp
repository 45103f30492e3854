#pragma once

// Tokens that are kept.

#include <phiattn/attention/tokens.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>

#include <algorithm>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Keys, values and log-weights of all tokens so far, as they came, in rows that grow by doubling.
template <class S>
class TokenStore {
 public:
  explicit TokenStore(Index dv) { values_.resize(0, dv); }

  Index size() const { return size_; }
  Index value_dimension() const { return values_.cols(); }
  Rows<const S> keys() const { return Rows<const S>(keys_).top(size_); }
  Rows<const S> values() const { return Rows<const S>(values_).top(size_); }
  const S* log_weights() const { return log_weights_.data(); }
  Tokens<S> all() const { return {keys(), values(), log_weights(), 0}; }

  /// Room for n more tokens, all of it or nothing: what is there is given up once the larger is there.
  void make_room(Index n, Index d) {
    if (keys_.cols() == d && size_ + n <= keys_.rows()) return;
    hold(grown(size_ + n, keys_.rows(), (d + values_.cols()) * Index{sizeof(S)}), d);
  }

  /// Room for `capacity` tokens in all.
  void reserve(Index capacity, Index d) {
    if (capacity > keys_.rows()) hold(capacity, d);
  }

  void push(const Tokens<S>& tokens) {
    const Index n = tokens.size();
    if (n == 0) return;  // of what dimension, nobody knows
    make_room(n, tokens.k.cols);
    copy(tokens.k, keys_.data() + size_ * keys_.cols());
    copy(tokens.v, values_.data() + size_ * values_.cols());
    if (tokens.log_weights) {
      std::copy_n(tokens.log_weights, n, log_weights_.data() + size_);
    } else {
      std::fill_n(log_weights_.data() + size_, n, S(0));
    }
    size_ += n;
  }

  /// A single token, its key times `factor`.
  void push(const InputView<S>& k, S factor, const InputView<S>& v) {
    make_room(1, k.cols());
    k.load(0, factor, {keys_.data() + size_ * keys_.cols(), 1, keys_.cols()});
    v.load(0, S(1), {values_.data() + size_ * values_.cols(), 1, values_.cols()});
    log_weights_.data()[size_] = 0;
    size_ += 1;
  }
  /// The tokens from the n-th on have never come.
  void truncate(Index n) { size_ -= size_ - n; }

 private:
  void hold(Index capacity, Index d) {
    Matrix<S> keys(capacity, d), values(capacity, values_.cols());
    Vector<S> log_weights(capacity);
    if (size_ > 0) {
      keys.topRows(size_) = keys_.topRows(size_);
      values.topRows(size_) = values_.topRows(size_);
      log_weights.head(size_) = log_weights_.head(size_);
    }
    keys_.swap(keys);
    values_.swap(values);
    log_weights_.swap(log_weights);
  }

  static void copy(Rows<const S> from, S* to) {
    for (Index j = 0; j < from.rows; ++j, to += from.cols) std::copy_n(from.row(j), from.cols, to);
  }

  Matrix<S> keys_, values_;
  Vector<S> log_weights_;
  Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
