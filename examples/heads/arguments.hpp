// The command line of compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../support/command_line.hpp"
#include "../support/registry.hpp"

namespace examples {

inline constexpr std::string_view kUsage =
    "usage: compare [--q F --k F --v F | --heads A,B] [--causal yes|no|both] [--maps A,B]\n"
    "               [--features M,N] [--seed N] [--json] [--out F] [--help]\n";

struct Arguments : CommonArguments {
  std::string q, k, v;             // all empty: the shipped heads
  std::vector<std::string> heads;  // empty: all
  std::optional<bool> causal;      // none: both, or see as_shipped
  bool as_shipped = true;          // every shipped head as its model uses it
  std::vector<std::string> maps;   // empty: the default ones
  std::vector<std::int64_t> features{64, 256, 1024};
  std::uint64_t seed = 0;
  std::string out;
};

/// What stands behind the usage in --help.
/// @param known  the registry that --maps chooses from
template <class Map>
std::string help(const std::vector<Map>& known) {
  constexpr std::size_t kIndent = 22;
  const Arguments defaults;
  return R"(
Compares approximations of softmax attention with the exact result, on real attention heads.

  --q F --k F --v F   .npy files of queries (n_q, d), keys (n_k, d) and values (n_k, dv), or each
                      with heads, or a batch and heads, in front: (batch, heads, n, d). Heads of keys
                      and values may be fewer: each then serves as many queries' heads in a row. Any
                      float16, bfloat16, float32 or float64, before the scale 1/sqrt(d). The maps run
                      in float, the exact result in double.
                      Without them, the heads that come with phiattn.
  --heads A,B         of those only these: easy_a easy_b medium_a medium_b hard_local hard_nonlocal
  --causal yes|no|both
                      yes: a query sees no later key (the last query sees all keys). Without it, the
                      shipped heads are run as their models use them, your files both ways.
  --maps A,B          of these maps and memories, or all:
)" + described(known, kIndent) +
         defaults_in_words(known, kIndent) +
         R"(  --features M,N      numbers of features, of those with [m]; )" + at_commas(defaults.features) +
         R"(
  --seed N            of what is random; )" +
         std::to_string(defaults.seed) + R"(
  --json              an array of objects instead of tables; null stands for what is not finite, not
                      measured, or not there (features of softmax)
  --out F             writes the output, as .npy; needs one head, one causality and one map

Exit code 2: bad usage, a file that is malformed or does not fit the others, or output that cannot
be written.
)";
}

/// @throws UsageError  saying what is wrong
inline Arguments parse_arguments(const std::vector<std::string>& words) {
  constexpr std::int64_t kMostFeatures = 1 << 20;
  Arguments arguments;
  parse_flags(words, arguments, [&](const std::string& flag, const auto& value) {
    if (flag == "--q") {
      arguments.q = value();
    } else if (flag == "--k") {
      arguments.k = value();
    } else if (flag == "--v") {
      arguments.v = value();
    } else if (flag == "--out") {
      arguments.out = value();
    } else if (flag == "--heads") {
      arguments.heads = detail::split_at_commas("--heads", value());
    } else if (flag == "--maps") {
      arguments.maps = detail::split_at_commas("--maps", value());
    } else if (flag == "--features") {
      arguments.features.clear();
      for (const std::string& text : detail::split_at_commas("--features", value())) {
        arguments.features.push_back(detail::number<std::int64_t>("--features", text, 1, kMostFeatures));
      }
    } else if (flag == "--seed") {
      arguments.seed = detail::number<std::uint64_t>("--seed", value(), 0, UINT64_MAX);
    } else if (flag == "--causal") {
      const std::string& choice = value();
      if (choice != "yes" && choice != "no" && choice != "both") {
        throw UsageError("--causal: got '" + choice + "', expected yes, no or both");
      }
      arguments.as_shipped = false;
      arguments.causal = choice == "both" ? std::nullopt : std::optional(choice == "yes");
    } else {
      return false;
    }
    return true;
  });
  const bool some = !arguments.q.empty() || !arguments.k.empty() || !arguments.v.empty();
  const bool all = !arguments.q.empty() && !arguments.k.empty() && !arguments.v.empty();
  if (some && !all) throw UsageError("--q, --k and --v go together: give all three or none");
  if (some && !arguments.heads.empty())
    throw UsageError("--heads chooses among the shipped heads, not your files");
  return arguments;
}

}  // namespace examples
