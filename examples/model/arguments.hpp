// The command line of language_model.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "../support/command_line.hpp"
#include "../support/registry.hpp"

namespace examples {

inline constexpr std::string_view kModelUsage =
    "usage: language_model [--attentions A,B|all] [--windows N] [--lengths N,M] [--quick | --full]\n"
    "                      [--json] [--help]\n";

/// Windows of held-out text that there are.
inline constexpr phiattn::Index kHeldOutWindows = 8;

struct ModelArguments : CommonArguments {
  std::vector<std::string> attentions;  // empty: the default ones
  phiattn::Index windows = kHeldOutWindows;
  std::vector<phiattn::Index> lengths{1024, 4096};
};

/// Tokens that are written, one by one, up to each length.
inline constexpr phiattn::Index kWritten = 64;

/// What stands behind the usage in --help.
/// @param known  the registry that --attentions chooses from
template <class Attention>
std::string model_help(const std::vector<Attention>& known) {
  constexpr std::size_t kIndent = 20;
  const ModelArguments defaults;
  return R"(
Runs a trained language model (4 layers of 4 heads, d = 64, 3.4 M parameters) with other attention in the
place of softmax, without retraining: its loss on held-out text, the memory it takes, its speed, and what it
writes.

  --attentions A,B  of these, or all:
)" + described(known, kIndent) +
         defaults_in_words(known, kIndent) +
         R"(  --windows N       loss over the first N of the held-out windows of 1024 tokens; all )" +
         std::to_string(defaults.windows) + R"(
  --lengths N,M     tokens behind which memory and speed are taken; )" +
         at_commas(defaults.lengths) + R"(
  --quick           seconds: 2 windows, 1024 tokens, few attentions
  --full            minutes: lengths up to 65536, by repeating the windows
  --json            an array of objects, one for each attention and length; null is what is not finite or
                    not measured

Exit code 2: bad usage, a file that is missing or malformed, or output that cannot be written.
)";
}

/// @throws UsageError  saying what is wrong
inline ModelArguments parse_model_arguments(const std::vector<std::string>& words) {
  constexpr phiattn::Index kLongest = 1 << 20;
  ModelArguments arguments;
  parse_flags(words, arguments, [&](const std::string& flag, const auto& value) {
    if (flag == "--attentions") {
      arguments.attentions = detail::split_at_commas(flag, value());
    } else if (flag == "--windows") {
      arguments.windows = detail::number<phiattn::Index>(flag, value(), 1, kHeldOutWindows);
    } else if (flag == "--lengths") {
      arguments.lengths.clear();
      for (const std::string& text : detail::split_at_commas(flag, value())) {
        arguments.lengths.push_back(detail::number<phiattn::Index>(flag, text, 2 * kWritten, kLongest));
      }
      // Each is reached from the one before.
      for (std::size_t l = 1; l < arguments.lengths.size(); ++l) {
        if (arguments.lengths[l] < arguments.lengths[l - 1] + 2 * kWritten) {
          throw UsageError("--lengths: expected each to be greater by 128 or more than the one before");
        }
      }
    } else if (flag == "--quick") {
      arguments.windows = 2;
      arguments.lengths = {1024};
      arguments.attentions = {"softmax", "window", "closure", "clusters", "performer", "uniform"};
    } else if (flag == "--full") {
      arguments.lengths = {1024, 4096, 16384, 65536};
    } else {
      return false;
    }
    return true;
  });
  return arguments;
}

}  // namespace examples
