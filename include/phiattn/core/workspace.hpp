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

 private:
  /// The block in use, how much of it is, and how much of all.
  struct Top {
    std::size_t block = 0, used = 0, all = 0;
  };

 public:
  /// What is taken between its construction and its end: given back as one, the last frame first.
  class Frame {
   public:
    Frame() : workspace_(of_this_thread()), before_(workspace_.top_) {}
    ~Frame() {
      workspace_.top_ = before_;
      if (before_.all == 0) workspace_.join();
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    /// n uninitialised numbers, at the start of a cache line.
    template <class T>
    T* numbers(Index n) {
      static_assert(std::is_trivially_destructible_v<T>);
      return static_cast<T*>(static_cast<void*>(workspace_.take(static_cast<std::size_t>(n) * sizeof(T))));
    }

    /// Makes sure of room for n numbers in at most `pieces`, in this frame and those that follow it: taking them does not
    /// throw, so that what is half done by then gets done.
    template <class T>
    void reserve(Index n, Index pieces) {
      workspace_.make_room(workspace_.in_lines(static_cast<std::size_t>(n) * sizeof(T)) +
                           static_cast<std::size_t>(pieces) * kLine);
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
    Top before_;
  };

  /// Gives its memory back, unless a frame is in use.
  void release() noexcept {
    if (top_.all == 0) blocks_.clear();
    most_ = top_.all;
  }

  /// What comes next in memory, fetched by the loops in between.
  detail::Prefetch ahead;

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kLeast = 16384;

  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{kLine}); }
  };
  struct Block {
    std::unique_ptr<std::byte, Free> data;
    std::size_t size;
  };

  Workspace() = default;

  static std::size_t in_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  std::byte* take(std::size_t bytes) {
    bytes = in_lines(bytes);
    make_room(bytes);
    top_.all += bytes;
    return blocks_[top_.block].data.get() + std::exchange(top_.used, top_.used + bytes);
  }

  /// What is left of a block that is too small for it stays unused until the frame ends.
  void make_room(std::size_t bytes) {
    most_ = (std::max)(most_, top_.all + bytes);
    while (top_.block < blocks_.size() && top_.used + bytes > blocks_[top_.block].size) {
      ++top_.block;
      top_.used = 0;
    }
    if (top_.block == blocks_.size()) blocks_.push_back(fresh((std::max)(bytes, kLeast)));
  }

  /// Nothing is in use: as much as it ever took, in one block, if there is memory for that.
  void join() noexcept {
    if (blocks_.size() < 2) return;
    blocks_.clear();
    Block one = fresh(most_, std::nothrow);
    if (one.data) blocks_.push_back(std::move(one));  // into the room that is there
  }

  template <class... NoThrow>
  static Block fresh(std::size_t size, NoThrow... nothrow) {
    auto* data = static_cast<std::byte*>(::operator new (size, std::align_val_t{kLine}, nothrow...));
    return {std::unique_ptr<std::byte, Free>(data), size};
  }

  std::vector<Block> blocks_;
  Top top_;
  std::size_t most_ = 0;
};

/// Gives back what this thread has kept for its work; the next call takes it anew.
inline void release_workspace() noexcept { Workspace::of_this_thread().release(); }

}  // namespace phiattn::inline PHIATTN_ABI
