// How llama prints its results: as lines or as JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "../support/json.hpp"
#include "attentions.hpp"
#include "llama_file.hpp"
#include "tokens.hpp"

namespace examples {

struct TokensPerSecond {
  double prompt = 0;
  double decode = 0;  // one by one, the median
};

/// One run, beside plain loops with exact attention.
struct LlamaResult {
  Tokens prompt, written;
  TokensPerSecond speed, plain_speed;
  std::optional<std::int64_t> memory_bytes;
  Index nonpositive_rows = 0;
  double largest_logit = 0;
  double difference = 0;  // of a logit from that of the plain loops, the largest
};

inline void print_llama_shape(const LlamaModel& model) {
  const LlamaShape& s = model.sides;
  std::printf(
      "model      dim %td, hidden %td, %td layers, %td heads of %td (%td of keys), %td tokens, %s "
      "parameters\n",
      s.dim, s.hidden, s.layers, s.heads, s.d(), s.kv_heads, s.vocabulary,
      (format("%.1f M", 1e-6 * static_cast<double>(s.parameters(model.shares_classifier())))).c_str());
}

inline void print_llama_result(const LlamaResult& r, const Attention& attention, Index block, bool plain) {
  const auto beside = [plain](double ours, double theirs) {
    return plain ? format(", %.2f x the plain loops'", ours / theirs) : "";
  };
  std::printf("attention  %s\n", attention.title.c_str());
  std::printf("prompt     %.1f tokens/s (%zu in blocks of %td)%s\n", r.speed.prompt, r.prompt.size(), block,
              beside(r.speed.prompt, r.plain_speed.prompt).c_str());
  std::printf("decode     %.1f tokens/s (median of %zu)%s\n", r.speed.decode, r.written.size(),
              beside(r.speed.decode, r.plain_speed.decode).c_str());
  if (r.memory_bytes)
    std::printf("memory     %.1f KiB in all heads\n", static_cast<double>(*r.memory_bytes) / 1024);
  if (plain) {
    std::printf("difference %.1e at most, of logits up to %.1f, from exact attention in plain loops\n",
                r.difference, r.largest_logit);
  }
  if (r.nonpositive_rows > 0) {
    std::printf("the normaliser (sum of weights) is not positive in %td rows\n", r.nonpositive_rows);
  }
}

inline void print_llama_json(const LlamaResult& r, const Attention& attention, bool plain,
                             const std::string& text) {
  const auto measured = [plain](double x) { return plain ? json_number(x) : std::string("null"); };
  std::printf(
      "{\"attention\": %s, \"prompt\": [%s], \"written\": [%s], \"text\": %s, \"prompt_tokens_per_second\": "
      "%s, "
      "\"decode_tokens_per_second\": %s, \"plain_prompt_tokens_per_second\": %s, "
      "\"plain_decode_tokens_per_second\": %s, \"memory_bytes\": %s, \"nonpositive_rows\": %td, "
      "\"largest_logit\": %s, \"difference\": %s}\n",
      json_string(attention.name).c_str(), at_commas(r.prompt).c_str(), at_commas(r.written).c_str(),
      json_string(text).c_str(), json_number(r.speed.prompt).c_str(), json_number(r.speed.decode).c_str(),
      measured(r.plain_speed.prompt).c_str(), measured(r.plain_speed.decode).c_str(),
      r.memory_bytes ? std::to_string(*r.memory_bytes).c_str() : "null", r.nonpositive_rows,
      json_number(r.largest_logit).c_str(), measured(r.difference).c_str());
}

}  // namespace examples
