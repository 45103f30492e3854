// The memory of one attention head, of whatever type. Next: decoder.hpp.
#pragma once

#include <phiattn/attention/memory.hpp>

#include <concepts>
#include <memory>
#include <utility>

namespace examples {

namespace pa = phiattn;
using pa::Index;

/// What a causal model needs of a memory: row t of q sees the past and the rows <= t.
template <class M>
concept CausalMemory = std::copyable<M> &&
    requires(M memory, const pa::Input<float>& x, const pa::Output<float>& out) {
  { memory.advance(x, x, x, out) } -> std::same_as<pa::AttentionStatus>;
};

/// Any of them behind one type, so that a model need not know which. Copies are independent.
class HeadMemory {
 public:
  template <class M>
  requires(!std::same_as<M, HeadMemory> && CausalMemory<M>) explicit HeadMemory(M memory)
      : memory_(std::make_unique<Model<M>>(std::move(memory))) {}

  HeadMemory(const HeadMemory& other) : memory_(other.memory_->clone()) {}
  HeadMemory& operator=(const HeadMemory& other) {
    memory_ = other.memory_->clone();
    return *this;
  }
  HeadMemory(HeadMemory&&) noexcept = default;
  HeadMemory& operator=(HeadMemory&&) noexcept = default;
  ~HeadMemory() = default;

  pa::AttentionStatus advance(const pa::Input<float>& q, const pa::Input<float>& k, const pa::Input<float>& v,
                              const pa::Output<float>& out) {
    return memory_->advance(q, k, v, out);
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual std::unique_ptr<Interface> clone() const = 0;
    virtual pa::AttentionStatus advance(const pa::Input<float>& q, const pa::Input<float>& k,
                                        const pa::Input<float>& v, const pa::Output<float>& out) = 0;
  };

  template <class M>
  struct Model final : Interface {
    explicit Model(M m) : memory(std::move(m)) {}
    std::unique_ptr<Interface> clone() const override { return std::make_unique<Model>(*this); }
    pa::AttentionStatus advance(const pa::Input<float>& q, const pa::Input<float>& k,
                                const pa::Input<float>& v, const pa::Output<float>& out) override {
      return memory.advance(q, k, v, out);
    }
    M memory;
  };

  std::unique_ptr<Interface> memory_;
};

}  // namespace examples
