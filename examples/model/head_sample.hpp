// Queries and keys of every head on a text, to calibrate memories with.
#pragma once

#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <algorithm>
#include <memory>
#include <optional>
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
class RecordingMemory : public pa::MemoryBase<RecordingMemory, float> {
 public:
  RecordingMemory(Index dv, std::shared_ptr<HeadSample> sample)
      : exact_(exact_memory(dv)), sample_(std::move(sample)) {}

  Index size() const { return exact_.size(); }
  std::optional<Index> dimension() const { return exact_.dimension(); }
  Index value_dimension() const { return exact_.value_dimension(); }
  double scale() const { return 1; }  // tokens as they come: the exact memory scales its own

  void append_block(const pa::Tokens<float>& tokens) {
    exact_.append(pa::Input<float>(tokens.k), pa::Input<float>(tokens.v));
  }
  pa::AttentionStatus read_block(const pa::Queries<float>& queries, const pa::RowSums<float>& out) const {
    auto rows = out.sums.eigen();
    exact_.read(pa::Input<float>(queries.q), rows);
    finish(out);
    return {};
  }
  pa::AttentionStatus advance_block(const pa::Queries<float>& queries, const pa::Tokens<float>& tokens,
                                    const pa::RowSums<float>& out) {
    write_down(queries.q, sample_->q);
    write_down(tokens.k, sample_->k);
    write_down(tokens.v, sample_->v);
    auto rows = out.sums.eigen();
    exact_.advance(pa::Input<float>(queries.q), pa::Input<float>(tokens.k), pa::Input<float>(tokens.v), rows);
    finish(out);
    return {};
  }
  void absorb(const RecordingMemory& other) { exact_.merge(other.exact_); }

 private:
  static void write_down(pa::Rows<const float> rows, pa::Matrix<float>& all) {
    const Index before = all.rows();
    all.conservativeResize(before + rows.rows, rows.cols);
    all.bottomRows(rows.rows) = rows.eigen();
  }

  /// The exact memory has divided already.
  static void finish(const pa::RowSums<float>& out) {
    std::fill_n(out.normaliser, out.rows(), 1.0F);
    std::fill_n(out.log_scale, out.rows(), 0.0F);
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
