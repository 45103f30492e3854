#pragma once

// Which memory a head needs.

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <limits>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// What cheapest_memory() found.
struct MemoryChoice {
  Index memory;                // the first within the tolerance; else the one of the least error
  std::vector<double> errors;  // relative_frobenius_error of the memories looked at, in order
};

/// The cheapest memory that serves a head well enough: each of the empty `memories`, cheapest first, attends to
/// calibration data of the head (q, k, v), until one is within `tolerance` of exact softmax attention in relative
/// Frobenius error. Take other data than what the memories' own constants were fitted to, and a window or two of it.
/// @param options  as for attention with these memories: causality and query_offset; the scale is 1/sqrt(d)
/// @throws std::invalid_argument  on shapes that do not fit
/// Cost: that of exact attention and of each memory looked at.
template <detail::ComputeScalar S, Memory... Memories>
MemoryChoice cheapest_memory(double tolerance, const Input<S>& q, const Input<S>& k, const Input<S>& v,
                             const AttentionOptions& options, const Memories&... memories) {
  const Matrix<S> exact = attention(ExponentialKernel<S>(), q, k, v, options);
  MemoryChoice choice{0, {}};
  double least = std::numeric_limits<double>::infinity();
  const auto within = [&](const auto& memory) {
    const double error = relative_frobenius_error(attention(memory, q, k, v, options), exact);
    if (error < least) {
      least = error;
      choice.memory = static_cast<Index>(choice.errors.size());
    }
    choice.errors.push_back(error);
    return error <= tolerance;
  };
  static_cast<void>((within(memories) || ...));
  return choice;
}

}  // namespace phiattn::inline PHIATTN_ABI
