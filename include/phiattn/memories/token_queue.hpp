#pragma once

// Tokens that wait to leave a window. Next: memories/near_attention.hpp.

#include <phiattn/core/matrix.hpp>
#include <phiattn/memories/token_rows.hpp>

#include <algorithm>

namespace phiattn::detail {

/// The last tokens of a stream, in order and contiguous, as they came. O(1) a token on average, and no allocation once
/// it has held as many as it ever will.
template <class S>
class TokenQueue {
 public:
  explicit TokenQueue(Index dv) { v_.resize(0, dv); }

  Index size() const { return size_; }
  Index value_dimension() const { return v_.cols(); }

  TokenRows<S> rows(Index first, Index n) const {
    return {k_.middleRows(head_ + first, n), v_.middleRows(head_ + first, n),
            log_weights_.segment(head_ + first, n)};
  }
  TokenRows<S> all() const { return rows(0, size_); }

  void push(const TokenRows<S>& tokens) {
    const Index n = tokens.size();
    make_room(n, tokens.k.cols());
    k_.middleRows(head_ + size_, n) = tokens.k;
    v_.middleRows(head_ + size_, n) = tokens.v;
    log_weights_.segment(head_ + size_, n) = tokens.log_weights;
    size_ += n;
  }

  /// The n oldest leave.
  void drop(Index n) {
    head_ += n;
    size_ -= n;
  }

 private:
  /// Moves to the front once as many tokens have left as are here, else doubles.
  void make_room(Index n, Index d) {
    if (k_.cols() == d && head_ + size_ + n <= k_.rows()) return;
    if (k_.cols() == d && size_ <= head_ && size_ + n <= k_.rows()) {
      move_to_front(k_.data(), d);
      move_to_front(v_.data(), v_.cols());
      move_to_front(log_weights_.data(), 1);
    } else {
      const Index capacity = 2 * (size_ + n);
      Matrix<S> k(capacity, d), v(capacity, v_.cols());
      Vector<S> log_weights(capacity);
      if (size_ > 0) {
        k.topRows(size_) = k_.middleRows(head_, size_);
        v.topRows(size_) = v_.middleRows(head_, size_);
        log_weights.head(size_) = log_weights_.segment(head_, size_);
      }
      k_.swap(k);
      v_.swap(v);
      log_weights_.swap(log_weights);
    }
    head_ = 0;
  }

  void move_to_front(S* numbers, Index columns) {
    std::copy_n(numbers + head_ * columns, size_ * columns, numbers);
  }

  Matrix<S> k_, v_;
  Vector<S> log_weights_;
  Index head_ = 0;
  Index size_ = 0;
};

}  // namespace phiattn::detail
