// The attention of a model's layers, with any memory in each of their heads of keys.
#pragma once

#include <phiattn/attention/head_memories.hpp>

#include <cstddef>
#include <vector>

#include "head_memory.hpp"
#include "head_sample.hpp"
#include "tokens.hpp"

namespace examples {

/// What came before is in the memories and nowhere else. Copies are independent, but for what they write down.
class AttentionLayers {
 public:
  /// @param empty  memories, one a head of keys, from the first layer on
  AttentionLayers(Index layers, const std::vector<HeadMemory>& empty) {
    const auto heads = static_cast<std::ptrdiff_t>(empty.size()) / layers;
    for (auto of_layer = empty.begin(); of_layer != empty.end(); of_layer += heads) {
      memories_.emplace_back(1, std::vector<HeadMemory>(of_layer, of_layer + heads));
    }
  }

  /// Causal attention of one layer to its past and to the tokens that come. Heads of queries are those of keys times a
  /// whole number.
  void advance(Index layer, const pa::Heads<const float>& q, const pa::Heads<const float>& k,
               const pa::Heads<const float>& v, const pa::Heads<float>& out) {
    auto& memories = memories_[static_cast<std::size_t>(layer)];
    nonpositive_rows_ += memories.advance(q, k, v, out).nonpositive_rows;
    if (!samples_) return;
    for (Index h = 0; h < memories.kv_heads(); ++h) {
      (*samples_)[static_cast<std::size_t>(layer * memories.kv_heads() + h)].append(q, k, v, h);
    }
  }

  /// Adds what the heads compute from here on to `samples`, in the order of the memories.
  void write_down(std::vector<HeadSample>& samples) { samples_ = &samples; }

  /// Rows of all heads and layers whose normaliser was not positive.
  Index nonpositive_rows() const { return nonpositive_rows_; }

  /// A copy of each memory.
  std::vector<HeadMemory> memories() const {
    std::vector<HeadMemory> all;
    for (const auto& layer : memories_) {
      for (Index h = 0; h < layer.kv_heads(); ++h) all.push_back(layer.memory(0, h));
    }
    return all;
  }

 private:
  std::vector<pa::HeadMemories<HeadMemory>> memories_;  // of each layer
  std::vector<HeadSample>* samples_ = nullptr;
  Index nonpositive_rows_ = 0;
};

/// What the heads of keys of a model compute on texts, one after the other, with exact attention.
/// @param heads  of keys of all layers, each of d numbers
template <class Decoder, class Model>
std::vector<HeadSample> head_samples(const Model& model, Index heads, Index d,
                                     const std::vector<Tokens>& texts) {
  std::vector<HeadSample> samples(static_cast<std::size_t>(heads));
  for (const Tokens& text : texts) {
    Decoder decoder(model, {samples.size(), HeadMemory(exact_memory(d))});
    decoder.write_down(samples);
    decoder.advance(text);
  }
  return samples;
}

}  // namespace examples
