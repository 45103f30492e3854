// Memories under any program of their verbs, against the definition over all tokens that they have seen.

#include <functional>
#include <utility>
#include <vector>

#include "book.hpp"

using namespace fuzz;

namespace {

using Options = phiattn::TokenOptions<float>;

/// A memory, and what it ought to hold.
struct Twin {
  phiattn::AnyMemory<float> memory;
  Book book;

  Index size() const { return book.size(); }
};

Block draw_block(Bytes& bytes, const Subject& subject) {
  const Index n = bytes.between(0, 12);
  const auto log_weights = draw_log_weights<float>(bytes, n, {2.0});
  return fuzz::draw_block(bytes, subject, n, log_weights,
                          bytes.between(0, 3) == 0 ? std::optional(bytes.between(0, 100)) : std::nullopt);
}

void check_read(Bytes& bytes, const Subject& subject, const Twin& twin) {
  require(twin.memory.size() == twin.size(), subject.far.name, "it holds as many tokens as came");
  const Matrix<float> q = subject.queries(bytes, bytes.between(1, 4));
  const Index first = bytes.between(0, 100);
  const auto partial = twin.memory.read_partial(q, first);
  const Expected due = expected(subject, twin.book, q, twin.book.behind(q.rows(), first));
  require_close(laws::error(partial, due), subject.far.name, "read");
}

/// Append or advance, which the map may interrupt.
void grow(Bytes& bytes, const Subject& subject, Twin& twin) {
  const Block block = draw_block(bytes, subject);
  if (twin.size() + block.size() > kMostTokens) return;
  const bool advance = bytes.flag();
  calls_left() = subject.traits.throws && bytes.flag() ? bytes.between(1, 6) : -1;
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
  // What was taken before something was thrown, if anything was, is there.
  const Index taken = twin.memory.size() - twin.size();
  require(0 <= taken && taken <= block.count() && (!whole || taken == block.count()), subject.far.name,
          "as many tokens are taken as it says");
  const Standing standing = twin.book.beside(block);
  twin.book.take(block, taken);
  if (!advance || !whole) return;
  require_close(laws::error(out, expected(subject, twin.book, block.q, standing)), subject.far.name,
                "advance");
}

/// The last tokens have never come, or what cannot be forgotten is all there.
void truncate(Bytes& bytes, const Subject& subject, Twin& twin) {
  const Index n = bytes.between(0, twin.size());
  try {
    twin.memory.truncate(n);
  } catch (const std::invalid_argument&) {
    require(0 < n && n < twin.size() && !subject.forgets(twin.size()), subject.far.name, "truncate");
    return;
  }
  twin.book.truncate(n);
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
      [&] { twin.memory.advance(block.q, block.k, out, out); },
      [&] { twin.memory.truncate(twin.size() + 1); }};
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
  const Subject& subject = draw_subject(bytes);
  const Twin empty{subject.make(kDv, bytes.one_of<Index>({64, 1, 3, 8})), {}};
  std::vector<Twin> pool(3, empty);
  for (int step = 0; step < 12 && bytes.left(); ++step) {
    Twin& twin = pool[static_cast<std::size_t>(bytes.between(0, 2))];
    Twin& other = pool[static_cast<std::size_t>(bytes.between(0, 2))];
    switch (bytes.between(0, 11)) {
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
        twin.book.merge(other.book);
        break;
      case 6:
        truncate(bytes, subject, twin);
        break;
      default:
        grow(bytes, subject, twin);
    }
  }
  for (const Twin& twin : pool) check_read(bytes, subject, twin);
  return 0;
}
