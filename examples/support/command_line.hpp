// What the command lines of the examples share: flags, lists and numbers.
#pragma once

#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace examples {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

inline std::vector<std::string> split_at_commas(const std::string& flag, const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (const std::string& part : parts) {
    if (part.empty()) throw UsageError(flag + ": got '" + text + "', expected a list like A,B");
  }
  return parts;
}

template <class T>
T number(const std::string& flag, const std::string& text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError(flag + ": got '" + text + "', expected a whole number from " + std::to_string(least) +
                     " to " + std::to_string(most));
  }
  return value;
}

}  // namespace detail

/// What every program takes.
struct CommonArguments {
  bool json = false;
  bool help = false;
};

/// Calls take(flag, value) for each flag but these; value() is the word behind it. `take` says whether it knows the flag.
/// @throws UsageError  saying what is wrong
template <class Take>
void parse_flags(const std::vector<std::string>& words, CommonArguments& common, const Take& take) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& flag = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw UsageError(flag + ": expected a value behind it");
      return words[++i];
    };
    if (flag == "--help" || flag == "-h") {
      common.help = true;
    } else if (flag == "--json") {
      common.json = true;
    } else if (!take(flag, value)) {
      throw UsageError("unknown argument '" + flag + "'");
    }
  }
}

}  // namespace examples
