// --help cannot rot: it names everything that there is to choose from, and the defaults that it states are what runs.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/help.hpp"
#include "support/program.hpp"

namespace {

using namespace support;

using Words = std::vector<std::string>;

std::string help_of(const std::string& program) {
  const auto [output, exit_code] = run(program, "--help");
  CHECK(exit_code == 0);
  return output;
}

/// Each name begins exactly one line of the list, with a description behind it.
void check_listed(const std::string& help, const Words& names) {
  std::multiset<std::string> described;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, about;
    if (words >> name >> about) described.insert(name);
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(described.count(name) == 1);
  }
}

/// What `member` of the JSON objects says, in order, without repetitions.
Words ran(const std::string& program, const std::string& arguments, const std::string& member) {
  const auto [output, exit_code] = run(program, "--json " + arguments);
  CAPTURE(output);
  REQUIRE(exit_code == 0);
  Words values;
  for (const auto& result : nlohmann::json::parse(output)) {
    const auto& value = result[member];
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(text);
  }
  return values;
}

/// 64,256 of the line that says so behind `before`.
std::string list_behind(const std::string& help, const std::string& before) {
  return words_between(help, before, '\n').at(0);
}

std::string at_commas(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

}  // namespace

TEST_CASE("compare --help: every map, memory and head, and the defaults that run") {
  const std::string help = help_of(PHIATTN_COMPARE);
  check_listed(help, known_names(PHIATTN_COMPARE, "--maps"));
  const Words heads = words_between(help, "only these: ", '\n');
  CHECK(heads == ran(PHIATTN_COMPARE, "--maps uniform", "head"));
  const std::string one_head = "--heads easy_a --causal no ";
  CHECK(words_between(help, "Without it: ", '.') == ran(PHIATTN_COMPARE, one_head + "--features 64", "name"));
  CHECK(list_behind(help, "[m]; ") ==
        at_commas(ran(PHIATTN_COMPARE, one_head + "--maps performer", "features")));
}

TEST_CASE("language_model --help: every attention, and the defaults that run") {
  const std::string help = help_of(PHIATTN_LANGUAGE_MODEL);
  check_listed(help, known_names(PHIATTN_LANGUAGE_MODEL, "--attentions"));
  CHECK(words_between(help, "Without it: ", '.') ==
        ran(PHIATTN_LANGUAGE_MODEL, "--windows 1 --lengths 128", "attention"));
  CHECK(list_behind(help, "speed are taken; ") ==
        at_commas(ran(PHIATTN_LANGUAGE_MODEL, "--windows 1 --attentions uniform", "n")));
}

TEST_CASE("llama --help: every attention, and the defaults that run") {
  const std::string help = help_of(PHIATTN_LLAMA);
  check_listed(help, known_names(PHIATTN_LLAMA, "--random 15M --attention"));
  const auto [output, exit_code] = run(PHIATTN_LLAMA, "--json --random 8,8,1,2,1,16");
  CAPTURE(output);
  REQUIRE(exit_code == 0);
  const auto result = nlohmann::json::parse(output);
  CHECK(help.find("--attention A      " + result["attention"].get<std::string>() + ',') != std::string::npos);
  CHECK(list_behind(help, "one by one; ") == std::to_string(result["written"].size()));
}
