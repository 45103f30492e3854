// Lists of named things that a flag chooses from, and what --help says of them: one source for both.
//
// An entry has a name, one line about it, and by_default: whether it is chosen without the flag.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace examples {

/// What a user may write behind the flag, instead of names.
inline const std::string kAll = "all";

/// The names of those that `wanted` says yes to, with `separator` between them.
template <class Entry, class Wanted>
std::string names_of(const std::vector<Entry>& known, const std::string& separator, const Wanted& wanted) {
  std::string names;
  for (const Entry& entry : known) {
    if (wanted(entry)) names += (names.empty() ? "" : separator) + entry.name;
  }
  return names;
}

/// Those that are named, in the order of the names; without names the default ones, in the registry's order.
/// @throws UsageError  if a name is not known, with those that are
template <class Entry>
std::vector<Entry> choose(const std::string& flag, const std::vector<Entry>& known,
                          const std::vector<std::string>& names) {
  if (names == std::vector{kAll}) return known;
  std::vector<Entry> chosen;
  if (names.empty()) {
    std::copy_if(known.begin(), known.end(), std::back_inserter(chosen),
                 [](const Entry& entry) { return entry.by_default; });
  }
  for (const std::string& name : names) {
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const Entry& entry) { return entry.name == name; });
    if (found == known.end()) {
      throw UsageError(flag + ": nothing is called '" + name +
                       "'; there are: " + names_of(known, " ", [](const Entry&) { return true; }));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

/// Two columns, the names and what they are, behind `indent` blanks.
template <class Entry>
std::string described(const std::vector<Entry>& known, std::size_t indent) {
  std::size_t width = 0;
  for (const Entry& entry : known) width = std::max(width, entry.name.size());
  std::string lines;
  for (const Entry& entry : known) {
    lines += std::string(indent, ' ') + entry.name + std::string(width + 2 - entry.name.size(), ' ') +
             entry.about + '\n';
  }
  return lines;
}

/// "Without it: A, B, C." in lines of a terminal's width, behind `indent` blanks.
template <class Entry>
std::string defaults_in_words(const std::vector<Entry>& known, std::size_t indent) {
  constexpr std::size_t kWidth = 100;
  const auto by_default = [](const Entry& entry) { return entry.by_default; };
  std::string rest = "Without it: " + names_of(known, ", ", by_default) + ".";
  std::string lines;
  while (rest.size() > kWidth - indent) {
    const std::size_t blank = rest.rfind(' ', kWidth - indent);
    lines += std::string(indent, ' ') + rest.substr(0, blank) + '\n';
    rest.erase(0, blank + 1);
  }
  return lines + std::string(indent, ' ') + rest + '\n';
}

/// A list as a flag takes it: 64,256,1024
template <class Number>
std::string at_commas(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace examples
