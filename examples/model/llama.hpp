// A Llama-style decoder (RMSNorm, rotary positions, grouped queries, SwiGLU) at work: tokens in, logits out, with any
// memory in each of its heads of keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "attention_layers.hpp"
#include "llama_file.hpp"
#include "rotary.hpp"

namespace examples {

/// One text, taken in a token or a block at a time; see Decoder.
class Llama {
 public:
  /// @param memories  empty ones, one a head of keys, from the first layer on
  Llama(const LlamaModel& model, const std::vector<HeadMemory>& memories)
      : model_(model),
        attention_(model.sides.layers, memories),
        rotary_(model.sides.d(), 10000, Pairs::neighbours) {}

  const AttentionLayers& attention() const { return attention_; }
  void write_down(std::vector<HeadSample>& samples) { attention_.write_down(samples); }

  /// Takes in the next tokens and returns the states (n, dim) that logits() makes predictions of.
  const pa::Matrix<float>& advance(std::span<const int> tokens) {
    const auto n = static_cast<Index>(tokens.size());
    x_.resize(n, model_.sides.dim);
    for (Index t = 0; t < n; ++t) x_.row(t) = model_.embedding.row(tokens[static_cast<std::size_t>(t)]);
    rotary_.move_to(position_, n);
    for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
      attend(model_.layers[layer], static_cast<Index>(layer));
      transform(model_.layers[layer]);
    }
    position_ += n;
    normalise(model_.last_norm);
    return normalised_;
  }

  /// Scores of every token of the vocabulary to come next, behind the last of the states.
  pa::RowVector<float> logits(const pa::Matrix<float>& states) const {
    return states.bottomRows<1>() * model_.classifier().transpose();
  }

 private:
  /// y = x / sqrt(mean x^2 + 1e-5) * weight for each row x   (Zhang & Sennrich 2019)
  void normalise(const pa::RowVector<float>& weight) {
    constexpr float kEpsilon = 1e-5f;
    normalised_.resize(x_.rows(), x_.cols());
    for (Index t = 0; t < x_.rows(); ++t) {
      const float mean_square = x_.row(t).squaredNorm() / static_cast<float>(x_.cols());
      normalised_.row(t) = x_.row(t).array() * weight.array() / std::sqrt(mean_square + kEpsilon);
    }
  }

  void attend(const LlamaLayer& layer, Index number) {
    const auto& [dim, hidden, layers, heads, kv_heads, vocabulary, context] = model_.sides;
    const Index d = model_.sides.d(), kv_dim = model_.sides.kv_dim();
    normalise(layer.attention_norm);
    qkv_.noalias() = normalised_ * layer.qkv.transpose();
    for (Index h = 0; h < heads + kv_heads; ++h) rotary_.turn(qkv_.middleCols(h * d, d));
    attended_.resize(x_.rows(), dim);
    attention_.advance(number, pa::packed_heads(qkv_.leftCols(dim), heads),
                       pa::packed_heads(qkv_.middleCols(dim, kv_dim), kv_heads),
                       pa::packed_heads(qkv_.rightCols(kv_dim), kv_heads),
                       pa::packed_heads(attended_, heads));
    x_.noalias() += attended_ * layer.projection.transpose();
  }

  /// SwiGLU   (Shazeer 2020)
  void transform(const LlamaLayer& layer) {
    const Index hidden = model_.sides.hidden;
    normalise(layer.transform_norm);
    gate_up_.noalias() = normalised_ * layer.gate_up.transpose();
    const auto gate = gate_up_.leftCols(hidden).array();
    hidden_ = gate / (1 + (-gate).exp()) * gate_up_.rightCols(hidden).array();
    x_.noalias() += hidden_ * layer.down.transpose();
  }

  const LlamaModel& model_;
  AttentionLayers attention_;
  Rotary rotary_;  // to be the library's
  Index position_ = 0;
  pa::Matrix<float> x_, normalised_, qkv_, attended_, gate_up_, hidden_;
};

}  // namespace examples
