// The language model at work: tokens in, logits out, with any memory in each of its heads.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include <phiattn/positions/rotary.hpp>

#include "attention_layers.hpp"
#include "files.hpp"

namespace examples {

/// One text, taken in a token or a block at a time. What came before is in the memories and nowhere else.
class Decoder {
 public:
  /// @param memories  empty ones, head by head from the first layer on
  Decoder(const LanguageModel& model, const std::vector<HeadMemory>& memories)
      : model_(model), attention_(model.sides.layers, memories) {}

  Index position() const { return position_; }
  const AttentionLayers& attention() const { return attention_; }
  void write_down(std::vector<HeadSample>& samples) { attention_.write_down(samples); }

  /// Takes in the next tokens and returns the states (n, width) that logits() makes predictions of.
  const pa::Matrix<float>& advance(std::span<const int> tokens) {
    const auto n = static_cast<Index>(tokens.size());
    x_.resize(n, model_.sides.width);
    for (Index t = 0; t < n; ++t) x_.row(t) = model_.embedding.row(tokens[static_cast<std::size_t>(t)]);
    for (std::size_t layer = 0; layer < model_.blocks.size(); ++layer) {
      attend(model_.blocks[layer], static_cast<Index>(layer));
      transform(model_.blocks[layer]);
    }
    position_ += n;
    normalise(model_.last);
    return normalised_;
  }

  /// Scores of every token of the vocabulary to come next, for rows of states.
  template <class States>
  pa::Matrix<float> logits(const States& states) const {
    return states * model_.embedding.transpose();
  }

 private:
  void normalise(const LayerNorm& norm) {
    constexpr float kEpsilon = 1e-5f;
    normalised_.resize(x_.rows(), x_.cols());
    for (Index t = 0; t < x_.rows(); ++t) {
      auto row = normalised_.row(t);
      row = x_.row(t).array() - x_.row(t).mean();
      const float variance = row.squaredNorm() / static_cast<float>(row.size());
      row = row.array() / std::sqrt(variance + kEpsilon) * norm.weight.array() + norm.bias.array();
    }
  }

  void attend(const Block& block, Index layer) {
    const Index heads = model_.sides.heads;
    const Index width = model_.sides.width;
    normalise(block.n1);
    qkv_.noalias() = normalised_ * block.qkv.transpose();
    heads_.resize(x_.rows(), width);
    pa::rotary(pa::packed_heads(qkv_.leftCols(2 * width), 2 * heads), position_,
               {.base = model_.sides.rotary_base, .pairs = pa::RotaryPairs::halves});
    attention_.advance(layer, pa::packed_heads(qkv_.leftCols(width), heads),
                       pa::packed_heads(qkv_.middleCols(width, width), heads),
                       pa::packed_heads(qkv_.rightCols(width), heads), pa::packed_heads(heads_, heads));
    x_.noalias() += heads_ * block.projection.transpose();
  }

  void transform(const Block& block) {
    normalise(block.n2);
    hidden_.noalias() = normalised_ * block.up.weight.transpose();
    for (Index t = 0; t < hidden_.rows(); ++t) {
      hidden_.row(t) = (hidden_.row(t) + block.up.bias).unaryExpr(&gelu);
    }
    x_.noalias() += hidden_ * block.down.weight.transpose();
    x_.rowwise() += block.down.bias;
  }

  /// Hendrycks & Gimpel 2016, exactly.
  static float gelu(float x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<float>)); }

  const LanguageModel& model_;
  AttentionLayers attention_;
  Index position_ = 0;
  pa::Matrix<float> x_, normalised_, qkv_, heads_, hidden_;
};

/// Tokens that a text is taken in by, so that what a block needs stays in cache.
inline constexpr std::size_t kBlockOfTokens = 256;

/// Mean of -ln p(next token), in nats, over a window of text that the decoder has not begun.
inline double loss(Decoder& decoder, const Tokens& window) {
  double sum = 0;
  const std::size_t n = window.size() - 1;
  for (std::size_t first = 0; first < n; first += kBlockOfTokens) {
    const std::size_t size = std::min(kBlockOfTokens, n - first);
    const pa::Matrix<float> logits = decoder.logits(decoder.advance(std::span(window).subspan(first, size)));
    for (std::size_t t = 0; t < size; ++t) {
      const auto row = logits.row(static_cast<Index>(t)).array();
      const float highest = row.maxCoeff();
      const auto normaliser = static_cast<double>((row - highest).exp().sum());
      sum += std::log(normaliser) + static_cast<double>(highest - row(window[first + t + 1]));
    }
  }
  return sum / static_cast<double>(n);
}

}  // namespace examples
