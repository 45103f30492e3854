// A Llama-style decoder (RMSNorm, rotary positions, grouped queries, SwiGLU) over HeadMemories: runs a checkpoint of
// llama2.c, or random weights of a shape, with any attention in its heads, beside plain loops with exact attention. See
// llama --help.
//
// The rooms: model/llama_file.hpp (the weights), tokenizer.hpp, llama_arguments.hpp, llama_trial.hpp, llama_report.hpp; the
// heads themselves are model/attention_layers.hpp, which it shares with language_model as it does the attentions.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <phiattn/positions/rotary.hpp>

#include "model/attention_layers.hpp"
#include "model/attentions.hpp"
#include "model/llama_arguments.hpp"
#include "model/llama_file.hpp"
#include "model/llama_report.hpp"
#include "model/llama_trial.hpp"
#include "model/tokenizer.hpp"
#include "support/heap_hooks.hpp"
#include "support/program.hpp"

namespace {

using namespace examples;

/// One text, taken in a token or a block at a time; see Decoder.
class Llama {
 public:
  /// @param memories  empty ones, one a head of keys, from the first layer on
  Llama(const LlamaModel& model, const std::vector<HeadMemory>& memories)
      : model_(model), attention_(model.sides.layers, memories) {}

  const AttentionLayers& attention() const { return attention_; }
  void write_down(std::vector<HeadSample>& samples) { attention_.write_down(samples); }

  /// Takes in the next tokens and returns the states (n, dim) that logits() makes predictions of.
  const pa::Matrix<float>& advance(std::span<const int> tokens) {
    const auto n = static_cast<Index>(tokens.size());
    x_.resize(n, model_.sides.dim);
    for (Index t = 0; t < n; ++t) x_.row(t) = model_.embedding.row(tokens[static_cast<std::size_t>(t)]);
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
    const Index heads = model_.sides.heads, kv_heads = model_.sides.kv_heads;
    const Index dim = model_.sides.dim, kv_dim = model_.sides.kv_dim();
    normalise(layer.attention_norm);
    qkv_.noalias() = normalised_ * layer.qkv.transpose();
    pa::rotary(pa::packed_heads(qkv_.leftCols(dim + kv_dim), heads + kv_heads), position_);
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
  Index position_ = 0;
  pa::Matrix<float> x_, normalised_, qkv_, attended_, gate_up_, hidden_;
};

/// The same model with exact attention, one token at a time and one head at a time, without the library.
class PlainLlama {
 public:
  using Vector = Eigen::VectorXf;

  PlainLlama(const LlamaModel& model, Index most_tokens)
      : model_(model), turns_(static_cast<std::size_t>(model.sides.d() / 2)) {
    for (Index layer = 0; layer < model.sides.layers; ++layer) {
      keys_.emplace_back(most_tokens, model.sides.kv_dim());
      values_.emplace_back(most_tokens, model.sides.kv_dim());
    }
  }

  Vector advance(int token) {
    const LlamaShape& s = model_.sides;
    for (Index i = 0; i < s.d() / 2; ++i) {
      const double frequency = std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(s.d()));
      const double angle = static_cast<double>(position_) * frequency;
      turns_[static_cast<std::size_t>(i)] = {static_cast<float>(std::cos(angle)),
                                             static_cast<float>(std::sin(angle))};
    }
    Vector x = model_.embedding.row(token).transpose();
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      const LlamaLayer& layer = model_.layers[l];
      Vector qkv = layer.qkv * normalised(x, layer.attention_norm);
      turn(qkv.head(s.dim + s.kv_dim()));
      keys_[l].row(position_) = qkv.segment(s.dim, s.kv_dim());
      values_[l].row(position_) = qkv.tail(s.kv_dim());
      Vector attended(s.dim);
      for (Index h = 0; h < s.heads; ++h) {
        const Index column = h / (s.heads / s.kv_heads) * s.d();
        const auto keys = keys_[l].block(0, column, position_ + 1, s.d());
        const auto values = values_[l].block(0, column, position_ + 1, s.d());
        const Vector scores = keys * qkv.segment(h * s.d(), s.d()) / std::sqrt(static_cast<float>(s.d()));
        const Vector weights = (scores.array() - scores.maxCoeff()).exp();
        attended.segment(h * s.d(), s.d()) = values.transpose() * weights / weights.sum();
      }
      x += layer.projection * attended;
      const Vector gate_up = layer.gate_up * normalised(x, layer.transform_norm);
      Vector hidden(s.hidden);
      for (Index i = 0; i < s.hidden; ++i) {
        hidden(i) = gate_up(i) / (1 + std::exp(-gate_up(i))) * gate_up(s.hidden + i);
      }
      x += layer.down * hidden;
    }
    ++position_;
    return normalised(x, model_.last_norm);
  }

  Vector logits(const Vector& state) const { return model_.classifier() * state; }

 private:
  static Vector normalised(const Vector& x, const pa::RowVector<float>& weight) {
    return x.cwiseProduct(weight.transpose()) /
           std::sqrt(x.squaredNorm() / static_cast<float>(x.size()) + 1e-5f);
  }

  void turn(Eigen::Ref<Vector> heads) const {
    for (Index i = 0; i < heads.size() / 2; ++i) {
      const auto [c, s] = turns_[static_cast<std::size_t>(i) % turns_.size()];
      const float x = heads(2 * i), y = heads(2 * i + 1);
      heads(2 * i) = x * c - y * s;
      heads(2 * i + 1) = x * s + y * c;
    }
  }

  const LlamaModel& model_;
  std::vector<pa::Matrix<float>> keys_, values_;  // of each layer, (tokens, kv_dim)
  std::vector<std::pair<float, float>> turns_;    // cosine and sine of each pair of a head
  Index position_ = 0;
};

void run(const LlamaArguments& arguments) {
  const std::vector<Attention> chosen = choose("--attention", known_attentions(), {arguments.attention});
  if (chosen.size() != 1) throw UsageError("--attention: expected one");
  const Attention& attention = chosen.front();
  const LlamaModel model =
      arguments.random ? random_llama(*arguments.random, arguments.seed) : read_llama(arguments.model);
  std::optional<Tokenizer> tokenizer;
  if (!arguments.tokenizer.empty()) {
    tokenizer.emplace(arguments.tokenizer, static_cast<std::size_t>(model.sides.vocabulary));
  }
  const LlamaResult result = run_llama<Llama, PlainLlama>(
      model, attention, arguments, prompt_of(arguments, tokenizer, model.sides.vocabulary));
  const std::string text = tokenizer ? tokenizer->decode(result.written) : "";
  if (arguments.json) {
    print_llama_json(result, attention, arguments.plain, text);
  } else {
    print_llama_shape(model);
    print_llama_result(result, attention, arguments.block, arguments.plain);
    std::printf("written    %s\n", tokenizer ? text.c_str() : at_commas(result.written).c_str());
  }
  constexpr double kRounding = 1e-4;
  if (attention.name == kExact && !(result.difference <= kRounding * std::max(1.0, result.largest_logit))) {
    throw std::runtime_error("logits are not those of the plain loops");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("llama", kLlamaUsage, argc, argv, [](const std::vector<std::string>& words) {
    const LlamaArguments arguments = parse_llama_arguments(words);
    if (arguments.help) {
      std::printf("%s%s", kLlamaUsage.data(), llama_help(known_attentions()).c_str());
    } else {
      run(arguments);
    }
  });
}
