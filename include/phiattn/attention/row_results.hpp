#pragma once

// The last step of every read: sums become results. Next: attention/memory.hpp.

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/partial.hpp>
#include <phiattn/core/output.hpp>

#include <cmath>
#include <limits>

namespace phiattn::detail {

/// Where the rows of one read go: to an output, to a partial, or both; and what is to be said of them.
template <class S>
class RowResults {
 public:
  explicit RowResults(const Output<S>& out) : out_(&out) {}
  explicit RowResults(Partial<S>& partial) : partial_(&partial) {}

  /// Rows [first, first + n): weighted sums of values (n, dv), which it divides in place, and their normalisers (n),
  /// both to be multiplied by exp(log_scale) (n). A row of log-scale kNothing, or of normaliser 0 where every
  /// similarity is positive, attends to nothing.
  void take(Index first, MatrixRef<S> sums, const ConstVectorRef<S>& normaliser,
            const ConstVectorRef<S>& log_scale, bool positive) {
    for (Index t = 0; t < sums.rows(); ++t) {
      const S z = normaliser(t);
      if (z == 0 && (positive || log_scale(t) == kNothing<S>)) {
        sums.row(t).setZero();
        if (partial_) note(first + t, -std::numeric_limits<S>::infinity(), 1);
        continue;
      }
      sums.row(t) /= z;
      if (z <= 0) status_.add(first + t);
      if (partial_) note(first + t, std::log(std::abs(z)) + log_scale(t), z < 0 ? S(-1) : S(1));
    }
    if (out_) out_->store(first, sums);
    if (partial_) partial_->out.middleRows(first, sums.rows()) = sums;
  }

  /// Where rows [first, first + count) go, for a Prefetch.
  Span span(Index first, Index count) const { return out_ ? out_->span(first, count) : Span{}; }

  const AttentionStatus& status() const { return status_; }

 private:
  void note(Index row, S log_normaliser, S sign) {
    partial_->log_normaliser(row) = log_normaliser;
    partial_->sign(row) = sign;
  }

  const Output<S>* out_ = nullptr;
  Partial<S>* partial_ = nullptr;
  AttentionStatus status_;
};

}  // namespace phiattn::detail
