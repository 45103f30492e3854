// What a program says of the things that one of its flags chooses from.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/program.hpp"

namespace support {

/// The words behind `before` up to `end`, commas aside.
inline std::vector<std::string> words_between(const std::string& text, const std::string& before, char end) {
  std::size_t begin = text.find(before);
  REQUIRE(begin != std::string::npos);
  begin += before.size();
  std::istringstream stream(text.substr(begin, text.find(end, begin) - begin));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    if (word.back() == ',') word.pop_back();
    words.push_back(word);
  }
  return words;
}

/// All names that `flag` takes, as the program lists them when it is given another.
inline std::vector<std::string> known_names(const std::string& program, const std::string& flag) {
  const auto [output, exit_code] = run(program, flag + " no-such-name");
  CHECK(exit_code == 2);
  return words_between(output, "there are:", '\n');
}

}  // namespace support
