#pragma once

// Working memory of a thread.

#include <phiattn/core/prefetch.hpp>
#include <phiattn/core/rows.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// Working memory of the thread at hand, cut in the order of a stack. It belongs to the thread that does the work and
/// not to a memory or a call: a thousand heads share it, threads do not, and what is warmed up allocates nothing,
/// whoever reads beside it. It keeps the largest amount that it was ever asked for, in one block, until the thread
/// ends: several blocks would each go back to the system, only for their pages to be faulted in anew.
class Workspace {
 public:
  static Workspace& of_this_thread() {
    thread_local Workspace workspace;
    return workspace;
  }

  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// What is taken between its construction and its end: given back as one, the last frame first.
  class Frame {
   public:
    Frame() : workspace_(of_this_thread()), block_(workspace_.block_), used_(workspace_.used_) {}
    ~Frame() {
      workspace_.block_ = block_;
      workspace_.used_ = used_;
      if (block_ == 0 && used_ == 0) workspace_.join();
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    /// n uninitialised numbers, at the start of a cache line.
    template <class T>
    T* numbers(Index n) {
      static_assert(std::is_trivially_destructible_v<T>);
      return static_cast<T*>(static_cast<void*>(workspace_.take(static_cast<std::size_t>(n) * sizeof(T))));
    }

    template <class S>
    Rows<S> rows(Index n, Index m) {
      return {numbers<S>(n * m), n, m};
    }

    template <class S>
    Eigen::Map<Vector<S>> vector(Index n) {
      return {numbers<S>(n), n};
    }

   private:
    Workspace& workspace_;
    std::size_t block_, used_;
  };

  /// What comes next in memory, fetched by the loops in between.
  detail::Prefetch ahead;

 private:
  static constexpr std::size_t kLine = 64;

  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{kLine}); }
  };
  struct Block {
    std::unique_ptr<std::byte, Free> data;
    std::size_t size;
  };

  Workspace() = default;

  std::byte* take(std::size_t bytes) {
    bytes = (bytes + kLine - 1) / kLine * kLine;
    while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) blocks_.push_back(fresh(std::max(bytes, total())));
    return blocks_[block_].data.get() + std::exchange(used_, used_ + bytes);
  }

  /// Nothing is in use: all that it took in one block, if there is memory for that.
  void join() noexcept {
    if (blocks_.size() < 2) return;
    const std::size_t size = total();
    Block one = fresh(size, std::nothrow);
    if (!one.data) return;
    blocks_.clear();
    blocks_.push_back(std::move(one));  // into the room that is there
  }

  template <class... NoThrow>
  static Block fresh(std::size_t size, NoThrow... nothrow) {
    auto* data = static_cast<std::byte*>(::operator new(size, std::align_val_t{kLine}, nothrow...));
    return {std::unique_ptr<std::byte, Free>(data), size};
  }

  std::size_t total() const {
    std::size_t sum = 0;
    for (const Block& block : blocks_) sum += block.size;
    return sum;
  }

  std::vector<Block> blocks_;
  std::size_t block_ = 0;  // in use, and how much of it
  std::size_t used_ = 0;
};

}  // namespace phiattn::inline PHIATTN_ABI
