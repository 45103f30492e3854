// Queries and keys of every head on a text, to calibrate memories with.
#pragma once

#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <memory>
#include <span>
#include <vector>

#include "decoder.hpp"

namespace examples {

/// What one head computed, a row a token.
struct HeadSample {
  pa::Matrix<float> q, k, v;

  HeadSample rows(Index first, Index n) const {
    return {q.middleRows(first, n), k.middleRows(first, n), v.middleRows(first, n)};
  }
};

using ExactMemory = pa::KeyValueCache<pa::ExponentialKernel<float>>;

inline ExactMemory exact_memory(Index dv) { return {pa::ExponentialKernel<float>(), dv}; }

/// Exact attention that writes down what passes through it. Copies write into the same sample.
class RecordingMemory {
 public:
  RecordingMemory(Index dv, std::shared_ptr<HeadSample> sample)
      : exact_(exact_memory(dv)), sample_(std::move(sample)) {}

  pa::AttentionStatus advance(const pa::Input<float>& q, const pa::Input<float>& k, const pa::Input<float>& v,
                              const pa::Output<float>& out) {
    write_down(q, sample_->q);
    write_down(k, sample_->k);
    write_down(v, sample_->v);
    return exact_.advance(q, k, v, out);
  }

 private:
  static void write_down(const pa::Input<float>& rows, pa::Matrix<float>& all) {
    const Index before = all.rows();
    all.conservativeResize(before + rows.rows(), rows.cols());
    rows.load(0, 1, all.bottomRows(rows.rows()));
  }

  ExactMemory exact_;
  std::shared_ptr<HeadSample> sample_;
};

/// Of all heads, in the order of the decoder's memories, over whole windows one after the other.
inline std::vector<HeadSample> head_samples(const LanguageModel& model, const std::vector<Tokens>& windows) {
  std::vector<std::shared_ptr<HeadSample>> samples;
  std::vector<HeadMemory> memories;
  for (Index head = 0; head < model.sides.layers * model.sides.heads; ++head) {
    samples.push_back(std::make_shared<HeadSample>());
    memories.emplace_back(RecordingMemory(model.sides.d, samples.back()));
  }
  for (const Tokens& window : windows) {
    Decoder decoder(model, memories);
    decoder.advance(std::span(window).first(window.size() - 1));
  }
  std::vector<HeadSample> result;
  for (const auto& sample : samples) result.push_back(std::move(*sample));
  return result;
}

}  // namespace examples
