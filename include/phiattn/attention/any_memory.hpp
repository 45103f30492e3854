#pragma once

// A memory chosen at run time.

#include <phiattn/attention/memory_base.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// Bidirectional attention appends all and reads all, unless what a memory keeps of a key depends on where the query
/// stands.
template <Memory M>
AttentionStatus attend_all(M& memory, const InputGroup<typename M::Scalar>& q,
                           const CallKeys<typename M::Scalar>& keys,
                           const OutputGroup<typename M::Scalar>& out, Index first) {
  if constexpr (SeesBothSides<M>) {
    AttentionStatus status;
    for (Index h = 0; h < q.heads(); ++h) {
      AttentionStatus of_head;
      if constexpr (WeighsBothSides<M>) {
        of_head = memory.attend_around(q.head(h), keys.k, keys.v, out.head(h), first, keys.log_weights);
      } else {
        if (keys.log_weights) fail_argument("log_weights: the memory has none where it sees both sides");
        of_head = memory.attend_around(q.head(h), keys.k, keys.v, out.head(h), first);
      }
      status.add(of_head, out.row_number(0, h));
    }
    return status;
  } else {
    append_keys(memory, keys);
    return read_beside(memory, q, Padding(keys.log_weights), out, first);
  }
}

}  // namespace detail

/// Any memory of the library's own making (see MemoryBase) behind one type: for what a configuration names, and to hold
/// memories of several kinds side by side. A copy copies the memory.
/// @throws std::invalid_argument  merge, if the two hold memories of different types
/// Cost: that of the memory, and an indirect call a block.
template <detail::ComputeScalar S_>
class AnyMemory : public MemoryBase<AnyMemory<S_>, S_> {
 public:
  using S = S_;
  static constexpr Order kOrder = Order::sequence;  // it may be one of those

  // That M is another type comes first: whether this one is a memory is what is being asked.
  template <class M>
  requires(!std::same_as<M, AnyMemory>) &&
      BlockModel<M>&& Memory<M>&& std::same_as<typename M::Scalar, S> AnyMemory(
          M memory) {  // implicit: it stands for its memory
    this->follow(memory);
    model_ = std::make_unique<Model<M>>(std::move(memory));
  }

  AnyMemory(const AnyMemory& other) : Base(other), model_(other.model_->clone()) {}
  AnyMemory(AnyMemory&&) noexcept = default;
  AnyMemory& operator=(AnyMemory other) noexcept {
    Base::operator=(other);
    model_ = std::move(other.model_);
    return *this;
  }
  ~AnyMemory() = default;

  Index size() const { return model_ ? model_->size() : 0; }  // none where it was moved from
  std::optional<Index> dimension() const { return model_->dimension(); }
  Index value_dimension() const { return model_->value_dimension(); }
  std::optional<double> scale() const { return model_->scale(); }

  /// Attention without causality of the memory, which must be empty and stays so.
  AttentionStatus attend_around(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                                Index first, const Input<S>& log_weights = {}) const {
    return model_->attend_around(q, {k, v, log_weights}, out, first);
  }

  // What MemoryBase works with; see BlockModel.
  Index block_rows() const { return model_->block_rows(); }
  bool takes_groups() const { return model_->takes_groups(); }
  std::optional<S> sink() const { return model_->sink(); }
  Index reading_position() const { return model_->reading_position(); }
  void settle(Index d) { model_->settle(d); }
  void append_block(const Tokens<S>& tokens) { model_->append_block(tokens); }
  AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const {
    return model_->read_block(queries, out);
  }
  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
    return model_->advance_block(queries, tokens, out);
  }
  void forget_all() { model_->clear(); }
  bool can_forget_from(Index n) const { return model_->can_forget_from(n); }
  Index forget_from(Index n) { return model_->forget_from(n); }
  bool advance_step(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                    const detail::InputView<S>& v, S root_scale, const detail::OutputGroup<S>& out) {
    return model_->advance_step(q, k, v, root_scale, out);
  }
  static constexpr bool kAbsorbsAtOnce = true;  // as merge() of the memory does
  void check_same(const AnyMemory& other) const { model_->check_same(*other.model_); }
  void absorb(const AnyMemory& other) { model_->absorb(*other.model_); }

 private:
  using Base = MemoryBase<AnyMemory<S_>, S_>;

  struct Concept {
    virtual ~Concept() = default;
    virtual std::unique_ptr<Concept> clone() const = 0;
    virtual Index size() const = 0;
    virtual std::optional<Index> dimension() const = 0;
    virtual Index value_dimension() const = 0;
    virtual std::optional<double> scale() const = 0;
    virtual Index block_rows() const = 0;
    virtual bool takes_groups() const = 0;
    virtual std::optional<S> sink() const = 0;
    virtual Index reading_position() const = 0;
    virtual void settle(Index d) = 0;
    virtual void append_block(const Tokens<S>& tokens) = 0;
    virtual AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const = 0;
    virtual AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens,
                                          const RowSums<S>& out) = 0;
    virtual bool advance_step(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                              const detail::InputView<S>& v, S root_scale,
                              const detail::OutputGroup<S>& out) = 0;
    virtual void clear() = 0;
    virtual bool can_forget_from(Index n) const = 0;
    virtual Index forget_from(Index n) = 0;
    virtual void check_same(const Concept& other) const = 0;
    virtual void absorb(const Concept& other) = 0;
    virtual AttentionStatus attend_around(const Input<S>& q, const detail::CallKeys<S>& keys,
                                          const Output<S>& out, Index first) const = 0;
  };

  template <class M>
  struct Model final : Concept {
    explicit Model(M m) : memory(std::move(m)) {}
    std::unique_ptr<Concept> clone() const override { return std::make_unique<Model>(*this); }
    Index size() const override { return memory.size(); }
    std::optional<Index> dimension() const override { return memory.dimension(); }
    Index value_dimension() const override { return memory.value_dimension(); }
    std::optional<double> scale() const override { return memory.scale(); }
    Index block_rows() const override { return memory.block_rows(); }
    bool takes_groups() const override { return memory.takes_groups(); }
    std::optional<S> sink() const override { return memory.sink(); }
    Index reading_position() const override { return memory.reading_position(); }
    void settle(Index d) override { memory.settle(d); }
    void append_block(const Tokens<S>& tokens) override { memory.append_block(tokens); }
    AttentionStatus read_block(const Queries<S>& queries, const RowSums<S>& out) const override {
      return memory.read_block(queries, out);
    }
    AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens,
                                  const RowSums<S>& out) override {
      return memory.advance_block(queries, tokens, out);
    }
    bool advance_step(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                      const detail::InputView<S>& v, S root_scale,
                      const detail::OutputGroup<S>& out) override {
      if constexpr (detail::StepModel<M>) {
        return memory.advance_step(q, k, v, root_scale, out);
      } else {
        return false;
      }
    }
    void clear() override {
      if constexpr (ClearableModel<M>) {
        memory.clear();
      } else {
        detail::fail_argument("clear: the memory has no forget_all()");
      }
    }
    bool can_forget_from(Index n) const override { return memory.can_forget_from(n); }
    Index forget_from(Index n) override { return memory.forget_from(n); }
    const M& same_type(const Concept& other) const {
      const auto* same = dynamic_cast<const Model*>(&other);
      if (!same) detail::fail_argument("merge: the memories are of different types");
      return same->memory;
    }
    void check_same(const Concept& other) const override { memory.check_same(same_type(other)); }
    void absorb(const Concept& other) override { memory.merge(same_type(other)); }
    AttentionStatus attend_around(const Input<S>& q, const detail::CallKeys<S>& keys, const Output<S>& out,
                                  Index first) const override {
      M empty = memory;
      return detail::attend_all(empty, q, keys, out, first);
    }

    M memory;
  };

  std::unique_ptr<Concept> model_;
};

}  // namespace phiattn::inline PHIATTN_ABI
