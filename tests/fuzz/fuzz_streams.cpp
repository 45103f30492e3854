// The memories of all heads of several streams, under any program of their verbs: each is what it is by itself.

#include <phiattn/attention/head_memories.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include "book.hpp"
#include "support/head_tensors.hpp"

using namespace fuzz;
using laws::Layout;
using laws::Tensor;

namespace {

/// Memories, and what each ought to hold.
class Streams {
 public:
  using Memories = phiattn::HeadMemories<phiattn::AnyMemory<float>>;

  Streams(const Subject& subject, const Memories& memories)
      : subject_(&subject), memories_(memories), kv_heads_(memories.kv_heads()) {
    resize(memories.streams());
  }

  Index streams() const { return memories_.streams(); }

  /// Append or advance, of some of the streams in any order.
  void grow(Bytes& bytes) {
    const bool advance = bytes.flag();
    const Index group = bytes.between(1, 3), n = bytes.between(0, 6);
    const std::vector<Index> chosen = draw_streams(bytes);
    const auto batch = static_cast<Index>(chosen.size());
    for (const Index s : chosen) {
      if (size(s) + n > kMostTokens) return;
    }
    Tokens tokens(bytes, {batch, kv_heads_, n, kD}, group);
    const Matrix<float> log_weights = draw_weights(bytes, batch, n);
    phiattn::HeadTokenOptions<float> options{
        .log_weights = log_weights.size() > 0 ? phiattn::Input<float>(log_weights) : phiattn::Input<float>(),
        .streams = chosen};
    if (bytes.between(0, 3) == 0) options.first = bytes.between(0, 100);

    std::vector<Block> blocks;
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < kv_heads_; ++h) {
        const Vector<float> weights =
            log_weights.size() > 0 ? Vector<float>(log_weights.row(b).transpose()) : Vector<float>();
        blocks.push_back(draw_block(bytes, *subject_, n, weights, options.first));
        tokens.k.view()(b, h) = blocks.back().k;
        tokens.v.view()(b, h) = blocks.back().v;
      }
      for (Index h = 0; h < kv_heads_ * group; ++h) tokens.q.view()(b, h) = subject_->queries(bytes, n);
    }
    if (advance) {
      memories_.advance(tokens.q.view(), tokens.k.view(), tokens.v.view(), tokens.out.view(), options);
    } else {
      memories_.append(tokens.k.view(), tokens.v.view(), options);
    }
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < kv_heads_; ++h) {
        Book& book = at(chosen[static_cast<std::size_t>(b)], h);
        const Block& block = blocks[static_cast<std::size_t>(b * kv_heads_ + h)];
        const Standing standing = book.beside(block);
        book.take(block, block.count());
        if (advance) check(tokens, b, h, group, book, standing, "advance");
      }
    }
  }

  void read(Bytes& bytes) const {
    const Index group = bytes.between(1, 3), n = bytes.between(1, 3), first = bytes.between(0, 100);
    const std::vector<Index> chosen = draw_streams(bytes);
    const auto batch = static_cast<Index>(chosen.size());
    Tokens tokens(bytes, {batch, kv_heads_, n, kD}, group);
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < kv_heads_ * group; ++h) tokens.q.view()(b, h) = subject_->queries(bytes, n);
    }
    memories_.read(tokens.q.view(), tokens.out.view(), {.first = first, .streams = chosen});
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < kv_heads_; ++h) {
        const Book& book = at(chosen[static_cast<std::size_t>(b)], h);
        check(tokens, b, h, group, book, book.behind(n, first), "read");
      }
    }
  }

  void merge(const Streams& other) {
    if (streams() != other.streams()) return;
    for (Index s = 0; s < streams(); ++s) {
      if (size(s) + other.size(s) > kMostTokens) return;
    }
    memories_.merge(other.memories_);
    const std::vector<Book> theirs = other.books_;  // they may be these
    for (std::size_t i = 0; i < books_.size(); ++i) books_[i].merge(theirs[i]);
  }

  void clear(Index stream) {
    memories_.clear(stream);
    for (Index h = 0; h < kv_heads_; ++h) at(stream, h) = {};
  }

  void truncate(Bytes& bytes, Index stream) {
    const Index n = bytes.between(0, size(stream));
    try {
      memories_.truncate(stream, n);
    } catch (const std::invalid_argument&) {
      require(0 < n && n < size(stream) && !subject_->forgets(size(stream)), subject_->far.name, "truncate");
      return;
    }
    for (Index h = 0; h < kv_heads_; ++h) at(stream, h).truncate(n);
  }

  void resize(Index streams) {
    memories_.resize(streams);
    books_.resize(static_cast<std::size_t>(streams * kv_heads_));
  }

  void check_sizes() const {
    for (Index s = 0; s < streams(); ++s) {
      for (Index h = 0; h < kv_heads_; ++h) {
        require(memories_.memory(s, h).size() == size(s), subject_->far.name, "sizes of streams");
      }
    }
  }

 private:
  struct Tokens {
    Tensor<float> q, k, v, out;

    Tokens(Bytes& bytes, phiattn::HeadsShape shape, Index group)
        : Tokens(shape, group, bytes.one_of({Layout::bhtd, Layout::bthd})) {}
    Tokens(const phiattn::HeadsShape& s, Index group, Layout layout)
        : q({s.batch, group * s.heads, s.tokens, s.dim}, layout),
          k(s, layout),
          v({s.batch, s.heads, s.tokens, kDv}, layout),
          out({s.batch, group * s.heads, s.tokens, kDv}, layout) {}
  };

  Index size(Index stream) const { return kv_heads_ == 0 ? 0 : at(stream, 0).size(); }
  Book& at(Index stream, Index h) { return books_[static_cast<std::size_t>(stream * kv_heads_ + h)]; }
  const Book& at(Index stream, Index h) const {
    return books_[static_cast<std::size_t>(stream * kv_heads_ + h)];
  }

  std::vector<Index> draw_streams(Bytes& bytes) const {
    std::vector<Index> chosen(static_cast<std::size_t>(streams()));
    std::iota(chosen.begin(), chosen.end(), Index{0});
    if (streams() == 0) return chosen;
    std::rotate(chosen.begin(), chosen.begin() + bytes.between(0, streams() - 1), chosen.end());
    chosen.resize(static_cast<std::size_t>(bytes.between(1, streams())));
    return chosen;
  }

  /// One row a sequence, or none at all.
  static Matrix<float> draw_weights(Bytes& bytes, Index batch, Index n) {
    if (!bytes.flag()) return {};
    Matrix<float> all = Matrix<float>::Zero(batch, n);
    for (Index b = 0; b < batch; ++b) {
      const Vector<float> weights = draw_log_weights<float>(bytes, n, {2.0});
      if (weights.size() > 0) all.row(b) = weights.transpose();
    }
    return all;
  }

  void check(const Tokens& tokens, Index b, Index h, Index group, const Book& book, const Standing& standing,
             const char* what) const {
    for (Index g = h * group; g < (h + 1) * group; ++g) {
      const Expected due = expected(*subject_, book, tokens.q.head(b, g), standing);
      require_close(laws::error(tokens.out.head(b, g), due), subject_->far.name, what);
    }
  }

  const Subject* subject_;
  Memories memories_;
  Index kv_heads_;
  std::vector<Book> books_;  // (streams, kv_heads)
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const Subject& subject = draw_subject(bytes);
  const auto empty = subject.make(kDv, bytes.one_of<Index>({64, 1, 3, 8}));
  std::vector<Streams> pool(2, Streams(subject, {bytes.between(1, 3), bytes.between(1, 2), empty}));
  for (int step = 0; step < 10 && bytes.left(); ++step) {
    Streams& one = pool[static_cast<std::size_t>(bytes.between(0, 1))];
    const Streams& other = pool[static_cast<std::size_t>(bytes.between(0, 1))];
    switch (bytes.between(0, 11)) {
      case 0:
        one.read(bytes);
        break;
      case 1:
        one = other;
        break;
      case 2:
      case 3:
        one.merge(other);
        break;
      case 4:
        one.clear(bytes.between(0, one.streams() - 1));
        break;
      case 5:
        one.truncate(bytes, bytes.between(0, one.streams() - 1));
        break;
      case 6:
        one.resize(bytes.between(1, 4));
        break;
      default:
        one.grow(bytes);
    }
    one.check_sizes();
  }
  for (const Streams& streams : pool) streams.read(bytes);
  return 0;
}
