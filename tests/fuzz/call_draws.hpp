// Tokens and options of a call.
#pragma once

#include <phiattn/attention/options.hpp>

#include <limits>

#include "bytes.hpp"

namespace fuzz {

using laws::AttentionOptions;
using laws::Causality;

/// Scores from next to nothing to where one key takes all.
template <class S>
Matrix<S> draw_tokens(Bytes& bytes, Index rows, Index cols, double largest = 20) {
  return bytes.gaussian<S>(rows, cols) * static_cast<S>(bytes.one_of({0.7, 1e-3, 2.0, 0.0, largest}));
}

inline AttentionOptions draw_options(Bytes& bytes, Index n_q, Index n_k) {
  AttentionOptions options;
  if (bytes.flag()) options.causality = Causality::causal;
  if (bytes.flag()) options.scale = bytes.one_of({1.0, 0.1, 3.0, 1e-6});
  if (bytes.flag()) options.query_offset = bytes.between(-n_q - 3, n_k + 3);
  options.chunk = bytes.one_of<Index>({128, 1, 2, 7, 16});
  return options;
}

}  // namespace fuzz
