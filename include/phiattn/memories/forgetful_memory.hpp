#pragma once

// Nothing beyond the window. Next: memories/window.hpp.

#include <phiattn/memories/block_memory.hpp>

namespace phiattn {

/// A memory that forgets every token: Windowed(w, ForgetfulMemory<float>(dv)) is sliding-window attention, which any
/// other far memory has to beat.
template <detail::ComputeScalar S>
class ForgetfulMemory : public detail::BlockMemory<ForgetfulMemory<S>, S> {
 public:
  /// @param dv  columns of the values to come
  /// @throws std::invalid_argument  if dv < 0
  explicit ForgetfulMemory(Index dv) : dv_(detail::checked_dv(dv)) {}

  Index size() const { return size_; }
  Index value_dimension() const { return dv_; }

  void merge(const ForgetfulMemory& other) {
    detail::check_equal("dv of the other memory", other.dv_, "dv of this one", dv_);
    size_ += other.size_;
  }

  // What Windowed drives; see detail::BlockMemory.
  Index block_rows() const { return detail::kBlockRows; }
  void check_dimension(const char* /*what*/, Index /*d*/) const {}

  void append_block(const detail::TokenRows<S>& tokens) { size_ += tokens.size(); }

  AttentionStatus read_block(const ConstMatrixRef<S>& /*q*/, Index /*first*/,
                             detail::PartialRows<S> results) const {
    results.set_nothing();
    return {};
  }

  AttentionStatus advance_block(const ConstMatrixRef<S>& q, const detail::TokenRows<S>& tokens,
                                detail::PartialRows<S> results) {
    append_block(tokens);
    return read_block(q, 0, results);
  }

 private:
  Index dv_;
  Index size_ = 0;
};

static_assert(Memory<ForgetfulMemory<float>> && Memory<ForgetfulMemory<double>>);

}  // namespace phiattn
