// What language_model measures of one attention.
#pragma once

#include <phiattn/core/random.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../support/heap_hooks.hpp"
#include "arguments.hpp"
#include "attentions.hpp"
#include "decoder.hpp"
#include "measuring.hpp"

namespace examples {

/// Behind `length` tokens.
struct Speed {
  Index length;
  double prefill_tokens_per_second;          // in blocks, from the first token on
  double decode_tokens_per_second;           // one by one, the median of the last ones
  std::optional<std::int64_t> memory_bytes;  // of all heads
};

/// One row of the table.
struct ModelResult {
  std::string attention, title;
  double loss;  // nats a token
  Index nonpositive_rows;
  std::vector<Speed> speeds;
  Tokens written;  // at the end of the first length
};

inline constexpr double kTemperature = 0.8;

/// Takes in `text` in blocks up to kWritten tokens before each length, and writes from there on.
inline void measure_speeds(Decoder decoder, const Tokens& text, const std::vector<Index>& lengths,
                           ModelResult& result) {
  const pa::Philox random(kSeed);
  pa::Matrix<float> logits;
  double prefill_seconds = 0;
  Index prefilled = 0;
  for (const Index length : lengths) {
    while (decoder.position() < length - kWritten) {
      const auto first = static_cast<std::size_t>(decoder.position());
      const auto end = static_cast<std::size_t>(length - kWritten);
      const auto block = std::span(text).subspan(first, std::min(kBlockOfTokens, end - first));
      prefill_seconds += seconds_of([&] { logits = decoder.logits(decoder.advance(block).bottomRows(1)); });
      prefilled += static_cast<Index>(block.size());
    }
    std::vector<double> seconds;
    while (decoder.position() < length) {
      seconds.push_back(seconds_of([&] {
        const int token =
            draw_token(logits, kTemperature, random.uniform(static_cast<std::uint64_t>(decoder.position())));
        if (length == lengths.front()) result.written.push_back(token);
        logits = decoder.logits(decoder.advance(std::span(&token, 1)));
      }));
    }
    result.speeds.push_back({length, static_cast<double>(prefilled) / prefill_seconds,
                             1 / median(std::move(seconds)), bytes_of(decoder.attention())});
  }
}

/// The model with one attention in all of its heads.
inline ModelResult try_attention(const Attention& attention, const LanguageModel& model,
                                 const std::vector<HeadSample>& samples, const std::vector<Tokens>& windows,
                                 const Tokens& text, const std::vector<Index>& lengths) {
  std::vector<HeadMemory> empty;
  for (const HeadSample& sample : samples) empty.push_back(attention.make(sample));
  ModelResult result{attention.name, attention.title, 0, 0, {}, {}};
  for (const Tokens& window : windows) {
    Decoder decoder(model, empty);
    result.loss += loss(decoder, window) / static_cast<double>(windows.size());
    result.nonpositive_rows += decoder.attention().nonpositive_rows();
  }
  measure_speeds(Decoder(model, std::move(empty)), text, lengths, result);
  return result;
}

}  // namespace examples
