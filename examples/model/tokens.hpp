// Tokens of a model, and how the next one is drawn.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <vector>

namespace examples {

namespace pa = phiattn;
using pa::Index;

using Tokens = std::vector<int>;

/// Draws the next token from its scores by a uniform number; at temperature 0 it is the best.
inline int draw_token(const pa::RowVector<float>& logits, double temperature, double uniform) {
  Index best = 0;
  const float highest = logits.maxCoeff(&best);
  if (temperature == 0) return static_cast<int>(best);
  const pa::RowVector<float> weights = ((logits.array() - highest) / static_cast<float>(temperature)).exp();
  double left = uniform * static_cast<double>(weights.sum());
  int token = 0;
  for (; token + 1 < weights.size(); ++token) {
    left -= static_cast<double>(weights(token));
    if (left < 0) break;
  }
  return token;
}

}  // namespace examples
