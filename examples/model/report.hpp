// How language_model prints its results: as a table or as JSON.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "../support/json.hpp"
#include "trial.hpp"
#include "vocabulary.hpp"

namespace examples {

inline constexpr const char* kModelTableHead =
    "loss     nats a token on held-out text, and how much more than with exact softmax attention\n"
    "memory   of all heads, without scratch; - if this build cannot measure it\n"
    "prefill  tokens a second, taken in by blocks, on one core; decode: one by one, behind n tokens\n"
    "*        calibrated on other text\n\n";

inline void print_model_table_head() {
  std::printf("%s%-21s %8s %8s %7s %13s %14s %13s\n", kModelTableHead, "attention", "loss", "more", "n",
              "memory [KiB]", "prefill [1/s]", "decode [1/s]");
}

/// @param exact  the loss of exact attention; NaN if it was not run
inline void print_model_rows(const ModelResult& result, double exact) {
  for (const Speed& speed : result.speeds) {
    const bool first = &speed == &result.speeds.front();
    const std::string memory =
        speed.memory_bytes ? format("%.0f", static_cast<double>(*speed.memory_bytes) / 1024) : "-";
    const std::string more = first && std::isfinite(exact) ? format("%+.4f", result.loss - exact) : "";
    std::printf("%-21s %8s %8s %7td %13s %14.0f %13.0f\n", first ? result.title.c_str() : "",
                first ? format("%.4f", result.loss).c_str() : "", more.c_str(), speed.length, memory.c_str(),
                speed.prefill_tokens_per_second, speed.decode_tokens_per_second);
  }
  if (result.nonpositive_rows > 0) {
    std::printf("    the normaliser (sum of weights) is not positive in %td rows\n", result.nonpositive_rows);
  }
  std::fflush(stdout);
}

/// What was written, behind the end of what was given.
inline void print_written(const std::vector<ModelResult>& results, const Tokens& given,
                          const Vocabulary& vocabulary) {
  const auto in_one_line = [&](std::span<const int> tokens) {
    std::string text = vocabulary.text(tokens);
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  constexpr std::size_t kShown = 24;
  std::printf(
      "\nWhat each goes on to write, with the same random numbers, after %zu tokens that end in\n  ...%s\n",
      given.size(), in_one_line(std::span(given).last(std::min(kShown, given.size()))).c_str());
  for (const ModelResult& result : results) {
    std::printf("\n%s:\n  %s\n", result.title.c_str(), in_one_line(result.written).c_str());
  }
}

inline void print_model_json(const std::vector<ModelResult>& results, const Vocabulary& vocabulary) {
  std::string separator = "[\n";
  for (const ModelResult& r : results) {
    for (const Speed& speed : r.speeds) {
      std::printf(
          "%s  {\"attention\": %s, \"loss\": %s, \"n\": %td, \"memory_bytes\": %s, "
          "\"prefill_tokens_per_second\": %s, \"decode_tokens_per_second\": %s, \"nonpositive_rows\": %td, "
          "\"text\": %s}",
          separator.c_str(), json_string(r.attention).c_str(), json_number(r.loss).c_str(), speed.length,
          speed.memory_bytes ? std::to_string(*speed.memory_bytes).c_str() : "null",
          json_number(speed.prefill_tokens_per_second).c_str(),
          json_number(speed.decode_tokens_per_second).c_str(), r.nonpositive_rows,
          json_string(vocabulary.text(r.written)).c_str());
      separator = ",\n";
    }
  }
  std::printf("\n]\n");
}

}  // namespace examples
