#pragma once

// The door: where undivided sums become results.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/partial.hpp>
#include <phiattn/core/output.hpp>

#include <optional>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The rows of a partial from the first on, as those of an OutputGroup of one head.
template <class S>
struct PartialRows {
  Partial<S>* partial;
  Index first = 0;

  PartialRows slice(Index begin, Index /*count*/) const { return {partial, first + begin}; }
};

/// Where the rows of one read go, the outputs of a group of heads or a partial; and what is to be said of them.
template <class S>
class RowResults {
 public:
  /// @param sink  the logit that joins each row's normaliser, or none
  explicit RowResults(const OutputGroup<S>& out, std::optional<S> sink = {}) : out_(out), sink_(sink) {}
  explicit RowResults(const PartialRows<S>& rows, std::optional<S> sink = {})
      : partial_(rows.partial), first_(rows.first), sink_(sink) {}
  explicit RowResults(Partial<S>& partial, std::optional<S> sink = {})
      : RowResults(PartialRows<S>{&partial}, sink) {}

  /// Those of the queries [first, first + n) of each head, which it divides in place.
  void take(Index first, const RowSums<S>& rows) {
    if (sink_) join_sink(rows, *sink_);
    if (partial_) {
      const RowSums<S> kept = partial_->row_sums().middle(first_ + first, rows.rows());
      kept.set_nothing();
      combine(kept, rows);
    }
    const Index heads = out_ ? out_->heads() : 1;
    for (Index t = 0; t < rows.rows(); ++t) {
      if (rows.is_nothing(t)) continue;
      if (!(rows.normaliser[t] > 0)) {
        status_.add(out_ ? out_->row_number(first + t / heads, t % heads) : first_ + first + t);
      }
      if (out_) rows.row(t) /= rows.normaliser[t];
    }
    if (out_) out_->store(first, rows.sums);
  }

  void add(const AttentionStatus& of_block) { status_.clamped_rows += of_block.clamped_rows; }

  /// Where rows [first, first + count) go, for a Prefetch.
  Span span(Index first, Index count) const { return out_ ? out_->span(first, count) : Span{}; }

  /// Of all rows, once they are there.
  AttentionStatus finish() {
    if (partial_) partial_->divide();
    return status_;
  }

 private:
  std::optional<OutputGroup<S>> out_;
  Partial<S>* partial_ = nullptr;
  Index first_ = 0;  // of the partial
  std::optional<S> sink_;
  AttentionStatus status_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
