// A Llama-style decoder over HeadMemories: runs a checkpoint of llama2.c, or random weights of a shape, with any attention
// in its heads, beside plain loops with exact attention. See llama --help.
//
// The decoder is model/llama.hpp, its weights model/llama_file.hpp; model/tokenizer.hpp, llama_arguments.hpp and
// llama_report.hpp are the rest of its own, and it shares attentions, rotary positions and the heads themselves
// (model/attention_layers.hpp) with language_model.

#include <phiattn/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/attentions.hpp"
#include "model/llama.hpp"
#include "model/llama_arguments.hpp"
#include "model/llama_report.hpp"
#include "model/measuring.hpp"
#include "model/tokenizer.hpp"
#include "support/heap_hooks.hpp"
#include "support/program.hpp"

namespace {

using namespace examples;

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

/// The numbers of tokens that a prompt names, or that its text is cut into.
Tokens prompt_of(const LlamaArguments& arguments, const std::optional<Tokenizer>& tokenizer,
                 Index vocabulary) {
  Tokens tokens;
  if (arguments.prompt_length) {
    const pa::Philox random(arguments.seed);
    for (Index t = 0; t < *arguments.prompt_length; ++t) {
      tokens.push_back(
          static_cast<int>(random.uniform(static_cast<std::uint64_t>(t)) * static_cast<double>(vocabulary)));
    }
  } else if (tokenizer) {
    tokens = tokenizer->encode(arguments.prompt.value_or(""));
  } else {
    std::istringstream words(arguments.prompt.value_or("1"));
    for (std::string word; words >> word;) {
      tokens.push_back(examples::detail::number<int>("--prompt", word, 0, static_cast<int>(vocabulary) - 1));
    }
  }
  if (tokens.empty()) throw UsageError("--prompt: expected one token or more");
  return tokens;
}

/// An empty memory for each head of keys, calibrated on the prompt if it needs to be.
std::vector<HeadMemory> empty_memories(const LlamaModel& model, const Attention& attention,
                                       const Tokens& prompt) {
  const Index heads = model.sides.layers * model.sides.kv_heads, d = model.sides.d();
  const auto length = static_cast<Index>(prompt.size());
  if (length < attention.least) {
    throw UsageError("--attention " + attention.name + ": calibrated on the prompt, expected " +
                     std::to_string(attention.least) + " tokens or more, got " + std::to_string(length));
  }
  std::vector<HeadSample> samples(
      static_cast<std::size_t>(heads),
      {pa::Matrix<float>(0, d), pa::Matrix<float>(0, d), pa::Matrix<float>(0, d)});
  if (attention.least > 0) samples = head_samples<Llama>(model, heads, d, {prompt});
  std::vector<HeadMemory> empty;
  for (const HeadSample& sample : samples) empty.push_back(attention.make(sample));
  return empty;
}

/// Takes in the prompt by blocks and writes on, token by token, the plain loops the same tokens in turn.
LlamaResult run_llama(const LlamaModel& model, const Attention& attention, const LlamaArguments& arguments,
                      Tokens prompt) {
  LlamaResult result;
  result.prompt = std::move(prompt);
  const auto length = static_cast<Index>(result.prompt.size());
  Llama llama(model, empty_memories(model, attention, result.prompt));
  PlainLlama plain(model, arguments.plain ? length + arguments.steps : 0);
  pa::RowVector<float> logits;
  PlainLlama::Vector state, due;
  const auto compare = [&] {
    result.largest_logit = std::max(result.largest_logit, double(logits.cwiseAbs().maxCoeff()));
    if (arguments.plain)
      result.difference =
          std::max(result.difference, double((logits.transpose() - due).cwiseAbs().maxCoeff()));
  };

  const double seconds = seconds_of([&] {
    for (Index first = 0; first < length; first += arguments.block) {
      const auto left = std::span(result.prompt).subspan(static_cast<std::size_t>(first));
      const auto& states =
          llama.advance(left.first(std::min(left.size(), static_cast<std::size_t>(arguments.block))));
      if (first + arguments.block >= length) logits = llama.logits(states);
    }
  });
  result.speed.prompt = static_cast<double>(length) / seconds;
  if (arguments.plain) {
    result.plain_speed.prompt = static_cast<double>(length) / seconds_of([&] {
                                  for (const int token : result.prompt) state = plain.advance(token);
                                  due = plain.logits(state);
                                });
  }
  compare();

  const pa::Philox random(arguments.seed, 1);
  std::vector<double> steps, plain_steps;
  for (Index step = 0; step < arguments.steps; ++step) {
    const int token =
        draw_token(logits, arguments.temperature, random.uniform(static_cast<std::uint64_t>(step)));
    result.written.push_back(token);
    steps.push_back(seconds_of([&] { logits = llama.logits(llama.advance({&token, 1})); }));
    if (arguments.plain) plain_steps.push_back(seconds_of([&] { due = plain.logits(plain.advance(token)); }));
    compare();
  }
  result.speed.decode = 1 / median(std::move(steps));
  if (arguments.plain) result.plain_speed.decode = 1 / median(std::move(plain_steps));
  result.memory_bytes = bytes_of(llama.attention());
  result.nonpositive_rows = llama.attention().nonpositive_rows();
  return result;
}

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
  const LlamaResult result =
      run_llama(model, attention, arguments, prompt_of(arguments, tokenizer, model.sides.vocabulary));
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
