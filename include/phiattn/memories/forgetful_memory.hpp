#pragma once

// Nothing beyond the window.

#include <phiattn/attention/memory_base.hpp>
#include <phiattn/core/count.hpp>

#include <optional>

namespace phiattn::inline PHIATTN_ABI {

/// A memory that forgets every token: Windowed(w, ForgetfulMemory<float>(dv)) is sliding-window attention, which any
/// other far memory has to beat. Of any dimension and scale.
template <detail::ComputeScalar S>
class ForgetfulMemory : public MemoryBase<ForgetfulMemory<S>, S> {
 public:
  /// @param dv  columns of the values to come
  /// @throws std::invalid_argument  if dv < 0
  explicit ForgetfulMemory(Index dv) : dv_(detail::checked_dv(dv)) {}

  Index size() const { return size_; }
  std::optional<Index> dimension() const { return std::nullopt; }
  Index value_dimension() const { return dv_; }
  std::optional<double> scale() const { return std::nullopt; }

  // What MemoryBase works with; see BlockModel.
  void forget_all() { size_ = {}; }
  bool takes_groups() const { return true; }
  void append_block(const Tokens<S>& tokens) { size_ += tokens.size(); }

  AttentionStatus read_block(const Queries<S>& /*queries*/, const RowSums<S>& out) const {
    out.set_nothing();
    return {};
  }

  AttentionStatus advance_block(const Queries<S>& queries, const Tokens<S>& tokens, const RowSums<S>& out) {
    append_block(tokens);
    return read_block(queries, out);
  }

  static constexpr bool kAbsorbsAtOnce = true;
  void absorb(const ForgetfulMemory& other) { size_ += other.size_; }

 private:
  Index dv_;
  detail::Count size_;
};

}  // namespace phiattn::inline PHIATTN_ABI
