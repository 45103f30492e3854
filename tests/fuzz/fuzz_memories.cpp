// Memories under any program of their verbs, against the definition over all tokens that they have seen.

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "subjects.hpp"

using namespace fuzz;
using laws::Expected;
using phiattn::RowVector;
using phiattn::Vector;

namespace {

using Options = phiattn::TokenOptions<float>;
constexpr Index kDv = 3;
constexpr Index kMostTokens = 60;
constexpr float kNot = -std::numeric_limits<float>::infinity();

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
};

/// A memory, and what it ought to hold.
struct Twin {
  phiattn::AnyMemory<float> memory;
  Matrix<float> k = Matrix<float>(0, kD), v = Matrix<float>(0, kDv);
  Vector<float> log_weights;
  std::vector<Index> positions;
  Index next = 0;

  Index size() const { return k.rows(); }

  void add(const Block& block, Index j, Index position) {
    k.conservativeResize(size() + 1, Eigen::NoChange);
    v.conservativeResize(k.rows(), Eigen::NoChange);
    log_weights.conservativeResize(k.rows());
    k.bottomRows(1) = block.k.row(j);
    v.bottomRows(1) = block.v.row(j);
    log_weights(size() - 1) = block.log_weights.size() == 0 ? 0 : block.log_weights(j);
    positions.push_back(position);
    next = position + 1;
  }

  void merge(const Twin& other) {
    const Twin theirs = other;  // it may be this one
    for (Index j = 0; j < theirs.size(); ++j) {
      const Block one{{}, theirs.k.row(j), theirs.v.row(j), theirs.log_weights.segment(j, 1), {}};
      const Index was = next;
      add(one, 0, theirs.positions[static_cast<std::size_t>(j)]);
      next = was;
    }
    next = std::max(next, theirs.next);
  }
};

Block draw_block(Bytes& bytes, const Subject& subject) {
  const Index n = bytes.between(0, 12);
  Block block{subject.queries(bytes, n), subject.keys(bytes, n), bytes.gaussian<float>(n, kDv), {}, {}};
  if (bytes.flag()) {
    block.log_weights = bytes.gaussian<float>(n, 1, 2);
    const auto missing = bytes.between(0, (1 << 12) - 1);
    for (Index j = 0; j < n; ++j) {
      if ((missing >> j & 1) == 0) continue;
      block.log_weights(j) = kNot;
      block.k.row(j).setConstant(bytes.one_of({std::numeric_limits<float>::quiet_NaN(), -kNot, 3e38F}));
      block.v.row(j).setConstant(kNot);
    }
  }
  if (bytes.between(0, 3) == 0) block.first = bytes.between(0, 100);
  return block;
}

/// What rows of queries get that see the first seen(i) tokens, each standing at position(i).
Expected expected(const Subject& subject, const Twin& twin, const Matrix<float>& q,
                  const std::vector<Index>& seen, const std::vector<Index>& positions) {
  laws::Problem<float> problem{q, twin.k, twin.v, {}, twin.log_weights};
  if (subject.by_position) {
    const auto with = [](const Matrix<float>& x, const std::vector<Index>& at) {
      Matrix<float> all(x.rows(), x.cols() + 1);
      for (Index t = 0; t < x.rows(); ++t)
        all.row(t) << x.row(t), static_cast<float>(at[static_cast<std::size_t>(t)]);
      return all;
    };
    problem.q = with(q, positions);
    problem.k = with(twin.k, twin.positions);
  }
  problem.options.scale = subject.scale;
  return laws::expected_far<float>(subject.far, problem, [&](Index i) {
    const Index n = seen[static_cast<std::size_t>(i)];
    const Index near = std::min(subject.window, n);
    return laws::Sight{laws::keys_in(n - near, n, n), {laws::keys_in(0, n - near, n)}};
  });
}

void check_read(Bytes& bytes, const Subject& subject, const Twin& twin) {
  require(twin.memory.size() == twin.size(), subject.far.name, "it holds as many tokens as came");
  const Matrix<float> q = subject.queries(bytes, bytes.between(1, 4));
  const Index first = bytes.between(0, 100);
  std::vector<Index> seen(static_cast<std::size_t>(q.rows()), twin.size()), positions;
  for (Index i = 0; i < q.rows(); ++i) positions.push_back(first + i);
  const auto partial = twin.memory.read_partial(q, first);
  require_close(laws::error(partial, expected(subject, twin, q, seen, positions)), subject.far.name, "read");
}

/// Tokens that were taken before something was thrown, if anything was, are there.
void take(Twin& twin, const Block& block, Index taken) {
  Index position = block.first.value_or(twin.next);
  for (Index j = 0; j < block.size() && taken > 0; ++j) {
    if (!block.exists(j)) continue;
    twin.add(block, j, position++);
    --taken;
  }
}

/// Append or advance, which the map may interrupt.
void grow(Bytes& bytes, const Subject& subject, Twin& twin) {
  const Block block = draw_block(bytes, subject);
  if (twin.size() + block.size() > kMostTokens) return;
  const bool advance = bytes.flag();
  calls_left() = subject.throws && bytes.flag() ? bytes.between(1, 6) : -1;
  Matrix<float> out(block.size(), kDv);
  bool whole = true;
  try {
    const Options options{.log_weights = block.log_weights.size() == 0
                                             ? phiattn::Input<float>()
                                             : phiattn::Input<float>(block.log_weights),
                          .first = block.first};
    if (advance) {
      twin.memory.advance(block.q, block.k, block.v, out, options);
    } else {
      twin.memory.append(block.k, block.v, options);
    }
  } catch (const Interrupted&) {
    whole = false;
  }
  calls_left() = -1;
  const Index before = twin.size(), taken = twin.memory.size() - before;
  require(0 <= taken && taken <= block.count() && (!whole || taken == block.count()), subject.far.name,
          "as many tokens are taken as it says");
  const Index next = twin.next;
  take(twin, block, taken);
  if (!advance || !whole) return;
  std::vector<Index> seen, positions;
  Index existing = 0, last = next;
  for (Index j = 0; j < block.size(); ++j) {
    if (block.exists(j)) last = block.first.value_or(next) + ++existing;
    positions.push_back(std::max<Index>(last - 1, 0));
    seen.push_back(before + existing);
  }
  require_close(laws::error(out, expected(subject, twin, block.q, seen, positions)), subject.far.name,
                "advance");
}

/// What is refused leaves no trace.
void refuse(Bytes& bytes, const Subject& subject, Twin& twin) {
  const Block block = draw_block(bytes, subject);
  if (block.size() == 0) return;
  Matrix<float> out(block.size(), kDv), wide(block.size(), kD + 1);
  wide.setZero();
  const auto calls = std::initializer_list<std::function<void()>>{
      [&] { twin.memory.append(block.k, block.v.topRows(block.size() - 1)); },
      [&] { twin.memory.append(block.k, block.v, Vector<float>::Zero(block.size() + 1)); },
      [&] { twin.memory.append(block.k, block.k); },
      [&] { twin.memory.advance(block.q, wide, block.v, out); },
      [&] { twin.memory.advance(block.q, block.k, block.v, out.leftCols(kDv - 1)); },
      [&] { twin.memory.advance(block.q, block.k, out, out); }};
  try {
    bytes.one_of(calls)();
  } catch (const std::invalid_argument&) {
    return;
  }
  require(false, subject.far.name, "what does not fit is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const auto& all = subjects();
  const Subject& subject =
      all[static_cast<std::size_t>(bytes.between(0, static_cast<Index>(all.size()) - 1))];
  calls_left() = -1;
  const Twin empty{subject.make(kDv, bytes.one_of<Index>({64, 1, 3, 8}))};
  std::vector<Twin> pool(3, empty);
  for (int step = 0; step < 12 && bytes.left(); ++step) {
    Twin& twin = pool[static_cast<std::size_t>(bytes.between(0, 2))];
    Twin& other = pool[static_cast<std::size_t>(bytes.between(0, 2))];
    switch (bytes.between(0, 9)) {
      case 0:
        check_read(bytes, subject, twin);
        break;
      case 1:
        refuse(bytes, subject, twin);
        break;
      case 2:
        twin = other;
        break;
      case 3:
        if (&twin == &other) break;
        twin = std::move(other);
        other = empty;
        break;
      case 4:
      case 5:
        if (twin.size() + other.size() > kMostTokens) break;
        twin.memory.merge(other.memory);
        twin.merge(other);
        break;
      default:
        grow(bytes, subject, twin);
    }
  }
  for (const Twin& twin : pool) check_read(bytes, subject, twin);
  return 0;
}
