#pragma once

// Tokens that wait to leave a window.

#include <phiattn/attention/tokens.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/core/matrix.hpp>

#include <algorithm>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The last tokens of a stream, in order and contiguous, as they came, each with its position. O(1) a token on average,
/// and no allocation once it has held as many as it ever will.
template <class S>
class TokenQueue {
 public:
  explicit TokenQueue(Index dv) { v_.resize(0, dv); }

  Index size() const { return size_; }
  Index value_dimension() const { return v_.cols(); }

  /// Tokens [first, first + n); `first` of them is the position of the first alone, see run().
  Tokens<S> middle(Index first, Index n) const {
    const Index at = head_ + first;
    return {Rows<const S>(k_).middle(at, n), Rows<const S>(v_).middle(at, n), log_weights_.data() + at,
            n > 0 ? positions_(at) : 0};
  }
  Tokens<S> all() const { return middle(0, size_); }

  /// How many of the tokens [first, end) stand one behind the other.
  Index run(Index first, Index end) const {
    Index n = std::min<Index>(1, end - first);
    while (first + n < end && positions_(head_ + first + n) == positions_(head_ + first) + n) ++n;
    return n;
  }

  void push(const Tokens<S>& tokens) {
    const Index n = tokens.size();
    if (n == 0) return;
    make_room(n, tokens.k.cols);
    const Index end = head_ + size_;
    k_.middleRows(end, n) = tokens.k.eigen();
    v_.middleRows(end, n) = tokens.v.eigen();
    for (Index j = 0; j < n; ++j) {
      log_weights_(end + j) = tokens.log_weight(j);
      positions_(end + j) = tokens.first + j;
    }
    size_ += n;
  }

  /// The n oldest leave.
  void drop(Index n) {
    head_ += n;
    size_ -= n;
  }
  /// The n last have never come.
  void drop_last(Index n) { size_ -= n; }

  /// Room for n more tokens. Moves to the front once as many tokens have left as are here, else doubles, all of it or
  /// nothing.
  void make_room(Index n, Index d) {
    if (k_.cols() == d && head_ + size_ + n <= k_.rows()) return;
    if (k_.cols() == d && size_ <= head_ && size_ + n <= k_.rows()) {
      move_to_front(k_.data(), d);
      move_to_front(v_.data(), v_.cols());
      move_to_front(log_weights_.data(), 1);
      move_to_front(positions_.data(), 1);
    } else {
      const Index capacity = grown(2 * (size_ + n), k_.rows(), (d + v_.cols()) * Index{sizeof(S)});
      Matrix<S> k(capacity, d), v(capacity, v_.cols());
      Vector<S> log_weights(capacity);
      Vector<Index> positions(capacity);
      if (size_ > 0) {
        k.topRows(size_) = k_.middleRows(head_, size_);
        v.topRows(size_) = v_.middleRows(head_, size_);
        log_weights.head(size_) = log_weights_.segment(head_, size_);
        positions.head(size_) = positions_.segment(head_, size_);
      }
      k_.swap(k);
      v_.swap(v);
      log_weights_.swap(log_weights);
      positions_.swap(positions);
    }
    head_ = Count();
  }

 private:
  template <class T>
  void move_to_front(T* numbers, Index columns) {
    std::copy_n(numbers + head_ * columns, size_ * columns, numbers);
  }

  Matrix<S> k_, v_;
  Vector<S> log_weights_;
  Vector<Index> positions_;
  Count head_;
  Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
