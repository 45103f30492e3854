// The command line of llama.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "../support/command_line.hpp"
#include "../support/registry.hpp"
#include "llama_file.hpp"

namespace examples {

inline constexpr std::string_view kLlamaUsage =
    "usage: llama (--model FILE | --random SHAPE) [--attention A] [--prompt P | --prompt-length N]\n"
    "             [--tokenizer FILE] [--block N] [--steps N] [--temperature T] [--seed N] [--no-plain]\n"
    "             [--json] [--help]\n";

struct LlamaArguments : CommonArguments {
  std::string model, tokenizer;      // files
  std::optional<LlamaShape> random;  // in place of a model
  std::string attention = "softmax";
  std::optional<std::string> prompt;
  std::optional<Index> prompt_length;
  Index block = 256, steps = 64;
  double temperature = 0;
  std::uint64_t seed = 0;
  bool plain = true;
};

/// What stands behind the usage in --help.
/// @param known  the registry that --attention chooses from
template <class Attention>
std::string llama_help(const std::vector<Attention>& known) {
  const LlamaArguments defaults;
  return R"(
Runs a Llama-style model (RMSNorm, rotary positions, grouped queries, SwiGLU) with any attention in its heads, beside
plain loops with exact attention: tokens a second, and the largest difference of a logit.

  --model FILE       a checkpoint of llama2.c, version 0 or 1 (float32)
  --random SHAPE     random weights instead, for timing: 15M (dim 288, 6 heads), 110M (dim 768, 12 heads), grouped
                     (the same, 3 heads of keys), or DIM,HIDDEN,LAYERS,HEADS,KV_HEADS,VOCABULARY
  --attention A      )" +
         defaults.attention + R"(, or another of these:
)" + described(known, 21) +
         R"(                     What is calibrated (centres, frames, tuned features) is so on the queries and keys of the
                     prompt, which exact attention takes in before: a prompt of 64 tokens or more.
  --prompt P         numbers of tokens, as "1 306 626", or a text if there is a tokenizer; a 1 without it
  --prompt-length N  a random prompt of N tokens, for timing
  --tokenizer FILE   the tokenizer file of llama2.c: texts come in and go out
  --block N          tokens of the prompt that are taken in at a time; )" +
         std::to_string(defaults.block) + R"(
  --steps N          tokens to write, one by one; )" +
         std::to_string(defaults.steps) + R"(
  --temperature T    of the tokens drawn; 0, which takes the best
  --seed N           of random weights, prompts and tokens; 0
  --no-plain         without the plain loops, which take in the prompt token by token
  --json             an object; null is what is not measured

Exit code 2: bad usage, a file that is missing or malformed, output that cannot be written, or logits with softmax
attention that are not those of the plain loops to 1e-4 of the largest, or of 1.
)";
}

namespace detail {

inline LlamaShape shape_named(const std::string& flag, const std::string& name) {
  constexpr Index kVocabulary = 32000, kContext = 2048;
  LlamaShape shape{0, 0, 0, 0, 0, 0, kContext};
  if (name == "15M") return {288, 768, 6, 6, 6, kVocabulary, kContext};
  if (name == "110M") return {768, 2048, 12, 12, 12, kVocabulary, kContext};
  if (name == "grouped") return {768, 2048, 12, 12, 3, kVocabulary, kContext};
  const std::vector<std::string> sides = split_at_commas(flag, name);
  if (sides.size() != 6) {
    throw UsageError(flag + ": got '" + name + "', expected 15M, 110M, grouped or six numbers at commas");
  }
  std::size_t i = 0;
  for (Index* side :
       {&shape.dim, &shape.hidden, &shape.layers, &shape.heads, &shape.kv_heads, &shape.vocabulary}) {
    *side = number<Index>(flag, sides[i++], 1, 1 << 24);
  }
  if (const std::string wrong = complaint_about(shape); !wrong.empty()) throw UsageError(flag + ": " + wrong);
  return shape;
}

inline double temperature(const std::string& flag, const std::string& text) {
  double t = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), t);
  if (error != std::errc() || end != text.data() + text.size() || !(t >= 0 && t <= 100)) {
    throw UsageError(flag + ": got '" + text + "', expected a number from 0 to 100");
  }
  return t;
}

}  // namespace detail

/// @throws UsageError  saying what is wrong
inline LlamaArguments parse_llama_arguments(const std::vector<std::string>& words) {
  constexpr Index kMost = 1 << 20;
  LlamaArguments arguments;
  parse_flags(words, arguments, [&](const std::string& flag, const auto& value) {
    if (flag == "--model") {
      arguments.model = value();
    } else if (flag == "--random") {
      arguments.random = detail::shape_named(flag, value());
    } else if (flag == "--attention") {
      arguments.attention = value();
    } else if (flag == "--prompt") {
      arguments.prompt = value();
    } else if (flag == "--prompt-length") {
      arguments.prompt_length = detail::number<Index>(flag, value(), 1, kMost);
    } else if (flag == "--tokenizer") {
      arguments.tokenizer = value();
    } else if (flag == "--block") {
      arguments.block = detail::number<Index>(flag, value(), 1, kMost);
    } else if (flag == "--steps") {
      arguments.steps = detail::number<Index>(flag, value(), 1, kMost);
    } else if (flag == "--temperature") {
      arguments.temperature = detail::temperature(flag, value());
    } else if (flag == "--seed") {
      arguments.seed = detail::number<std::uint64_t>(flag, value(), 0, UINT64_MAX);
    } else if (flag == "--no-plain") {
      arguments.plain = false;
    } else {
      return false;
    }
    return true;
  });
  if (arguments.help) return arguments;
  if (arguments.model.empty() == !arguments.random) throw UsageError("expected either --model or --random");
  if (arguments.prompt && arguments.prompt_length) {
    throw UsageError("expected no more than one of --prompt and --prompt-length");
  }
  return arguments;
}

}  // namespace examples
