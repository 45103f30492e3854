// What llama does with a prompt, and measures: see llama.cpp.
#pragma once

#include <phiattn/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attentions.hpp"
#include "llama_arguments.hpp"
#include "llama_report.hpp"
#include "measuring.hpp"
#include "tokenizer.hpp"

namespace examples {

/// The numbers of tokens that a prompt names, or that its text is cut into.
inline Tokens prompt_of(const LlamaArguments& arguments, const std::optional<Tokenizer>& tokenizer,
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
      tokens.push_back(detail::number<int>("--prompt", word, 0, static_cast<int>(vocabulary) - 1));
    }
  }
  if (tokens.empty()) throw UsageError("--prompt: expected one token or more");
  return tokens;
}

/// An empty memory for each head of keys, calibrated on the prompt if it needs to be.
template <class Decoder>
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
  if (attention.least > 0) samples = head_samples<Decoder>(model, heads, d, {prompt});
  std::vector<HeadMemory> empty;
  for (const HeadSample& sample : samples) empty.push_back(attention.make(sample));
  return empty;
}

namespace detail {

/// The largest of all, or NaN if one of them is.
inline double larger(double so_far, const pa::RowVector<float>& numbers) {
  const auto largest = static_cast<double>(numbers.maxCoeff<Eigen::PropagateNaN>());
  return largest > so_far || std::isnan(largest) ? largest : so_far;
}

}  // namespace detail

/// Takes in the prompt by blocks and writes on, token by token, the plain loops the same tokens in turn.
template <class Decoder, class Plain>
LlamaResult run_llama(const LlamaModel& model, const Attention& attention, const LlamaArguments& arguments,
                      Tokens prompt) {
  LlamaResult result;
  result.prompt = std::move(prompt);
  const auto length = static_cast<Index>(result.prompt.size());
  Decoder decoder(model, empty_memories<Decoder>(model, attention, result.prompt));
  Plain plain(model, arguments.plain ? length + arguments.steps : 0);
  pa::RowVector<float> logits;
  typename Plain::Vector state, due;
  const auto compare = [&] {
    result.largest_logit = detail::larger(result.largest_logit, logits.cwiseAbs());
    if (arguments.plain) {
      result.difference = detail::larger(result.difference, (logits - due.transpose()).cwiseAbs());
    }
  };

  const double seconds = seconds_of([&] {
    for (Index first = 0; first < length; first += arguments.block) {
      const auto left = std::span(result.prompt).subspan(static_cast<std::size_t>(first));
      const auto& states =
          decoder.advance(left.first(std::min(left.size(), static_cast<std::size_t>(arguments.block))));
      if (first + arguments.block >= length) logits = decoder.logits(states);
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
    steps.push_back(seconds_of([&] { logits = decoder.logits(decoder.advance({&token, 1})); }));
    if (arguments.plain) plain_steps.push_back(seconds_of([&] { due = plain.logits(plain.advance(token)); }));
    compare();
  }
  result.speed.decode = 1 / median(std::move(steps));
  if (arguments.plain) result.plain_speed.decode = 1 / median(std::move(plain_steps));
  result.memory_bytes = bytes_of(decoder.attention());
  result.nonpositive_rows = decoder.attention().nonpositive_rows();
  return result;
}

}  // namespace examples
