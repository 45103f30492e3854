// What a memory ought to hold, and what it ought to say.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "bytes.hpp"
#include "subjects.hpp"

namespace fuzz {

using laws::Expected;
using phiattn::Vector;

inline constexpr Index kDv = 3;
inline constexpr Index kMostTokens = 60;
inline constexpr float kNot = -std::numeric_limits<float>::infinity();

/// A block of tokens as they come, some of which may not exist.
struct Block {
  Matrix<float> q, k, v;
  Vector<float> log_weights;  // or of size 0
  std::optional<Index> first;

  Index size() const { return k.rows(); }
  bool exists(Index j) const { return log_weights.size() == 0 || log_weights(j) != kNot; }
  Index count() const {
    Index count = 0;
    for (Index j = 0; j < size(); ++j) count += exists(j);
    return count;
  }
  void hide(Index j, float number) {
    k.row(j).setConstant(number);
    v.row(j).setConstant(kNot);
  }
};

inline Block draw_block(Bytes& bytes, const Subject& subject, Index n, const Vector<float>& log_weights,
                        std::optional<Index> first) {
  Block block{subject.queries(bytes, n), subject.keys(bytes, n), bytes.gaussian<float>(n, kDv), log_weights,
              first};
  const float hidden = bytes.one_of({std::numeric_limits<float>::quiet_NaN(), -kNot, 3e38F});
  for (Index j = 0; j < n; ++j) {
    if (!block.exists(j)) block.hide(j, hidden);
  }
  return block;
}

/// The tokens that queries see, the first so many of all, and where they stand.
struct Standing {
  std::vector<Index> seen, positions;
};

struct Book {
  Matrix<float> k = Matrix<float>(0, kD), v = Matrix<float>(0, kDv);
  Vector<float> log_weights;
  std::vector<Index> positions;
  Index next = 0;

  Index size() const { return k.rows(); }

  /// The first `taken` tokens of a block that exist.
  void take(const Block& block, Index taken) {
    Index position = block.first.value_or(next);
    for (Index j = 0; j < block.size() && taken > 0; ++j) {
      if (!block.exists(j)) continue;
      add(block.k.row(j), block.v.row(j), block.log_weights.size() == 0 ? 0 : block.log_weights(j), position);
      next = ++position;
      --taken;
    }
  }

  void merge(const Book& other) {
    const Book theirs = other;  // it may be this one
    for (Index j = 0; j < theirs.size(); ++j) {
      add(theirs.k.row(j), theirs.v.row(j), theirs.log_weights(j),
          theirs.positions[static_cast<std::size_t>(j)]);
    }
    next = std::max(next, theirs.next);
  }

  void truncate(Index n) {
    if (n == size()) return;
    k.conservativeResize(n, Eigen::NoChange);
    v.conservativeResize(n, Eigen::NoChange);
    log_weights.conservativeResize(n);
    positions.resize(static_cast<std::size_t>(n));
    next = n == 0 ? 0 : positions.back() + 1;
  }

  /// How the queries of a block that is to be taken next will stand.
  Standing beside(const Block& block) const {
    Standing all;
    Index existing = 0, last = next;
    for (Index j = 0; j < block.size(); ++j) {
      if (block.exists(j)) last = block.first.value_or(next) + ++existing;
      all.positions.push_back(std::max<Index>(last - 1, 0));
      all.seen.push_back(size() + existing);
    }
    return all;
  }

  /// How n queries stand that read all there is, from a position on.
  Standing behind(Index n, Index first) const {
    Standing all;
    for (Index i = 0; i < n; ++i) {
      all.seen.push_back(size());
      all.positions.push_back(first + i);
    }
    return all;
  }

 private:
  template <class Row>
  void add(const Row& key, const Row& value, float log_weight, Index position) {
    const Index n = size() + 1;
    k.conservativeResize(n, Eigen::NoChange);
    v.conservativeResize(n, Eigen::NoChange);
    log_weights.conservativeResize(n);
    k.row(n - 1) = key;
    v.row(n - 1) = value;
    log_weights(n - 1) = log_weight;
    positions.push_back(position);
  }
};

/// What queries get of a memory that holds what the book says.
inline Expected expected(const Subject& subject, const Book& book, const Matrix<float>& q,
                         const Standing& standing) {
  laws::Problem<float> problem{q, book.k, book.v, {}, book.log_weights};
  if (subject.traits.by_position) {
    const auto with = [](const Matrix<float>& x, const std::vector<Index>& at) {
      Matrix<float> all(x.rows(), x.cols() + 1);
      for (Index t = 0; t < x.rows(); ++t)
        all.row(t) << x.row(t), static_cast<float>(at[static_cast<std::size_t>(t)]);
      return all;
    };
    problem.q = with(q, standing.positions);
    problem.k = with(book.k, book.positions);
  }
  problem.options.scale = subject.scale;
  return laws::expected_far<float>(subject.far, problem, [&](Index i) {
    const Index n = standing.seen[static_cast<std::size_t>(i)];
    const Index near = std::min(subject.window, n);
    return laws::Sight{laws::keys_in(n - near, n, n), {laws::keys_in(0, n - near, n)}};
  });
}

}  // namespace fuzz
