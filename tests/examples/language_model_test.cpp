// The language model has the loss that it was trained to, other attention costs it what the README says, and it speaks
// JSON.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/help.hpp"
#include "support/program.hpp"
#include "support/readme_table.hpp"

namespace {

using namespace support;

nlohmann::json results(const std::string& arguments) {
  const auto [output, exit_code] = run(PHIATTN_LANGUAGE_MODEL, "--json --lengths 128 " + arguments);
  CAPTURE(output);
  REQUIRE(exit_code == 0);
  return nlohmann::json::parse(output);
}

/// Losses that PyTorch computed from the same weights in float32.
std::vector<double> reference_losses() {
  std::ifstream file(std::filesystem::path(PHIATTN_DATA_DIR) / "model/config.json");
  return nlohmann::json::parse(file)["per_window"];
}

}  // namespace

TEST_CASE("language_model: exact softmax attention has the loss of the reference") {
  const std::vector<double> due = reference_losses();
  REQUIRE(due.size() == 8);
  const auto found = results("--windows 1 --attentions softmax,closure,uniform");
  REQUIRE(found.size() == 3);
  // Logits of size 10 in float, summed over 256 terms: each to some 1e-5, their mean over 1024 tokens better.
  CHECK(found[0]["loss"].get<double>() == Approx(due[0]).margin(2e-5));
  CHECK(found[0]["loss"] < found[1]["loss"]);
  CHECK(found[1]["loss"].get<double>() < due[0] + 0.05);
  CHECK(found[2]["loss"].get<double>() > due[0] + 1);
  const std::vector<std::string> names{"softmax", "closure", "uniform"};
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(names[i]);
    CHECK(found[i]["attention"] == names[i]);
    CHECK(found[i]["n"] == 128);
    CHECK(found[i]["nonpositive_rows"] == 0);
    CHECK(found[i]["prefill_tokens_per_second"] > 0);
    CHECK(found[i]["decode_tokens_per_second"] > 0);
    CHECK((found[i]["memory_bytes"].is_null() || found[i]["memory_bytes"] > 0));
    CHECK(!found[i]["text"].get<std::string>().empty());
  }
  CHECK(found[0]["text"] != found[2]["text"]);
}

TEST_CASE("language_model: the README's losses are those that it measures, to the digits given") {
  std::map<std::string, std::string> given;
  for (const auto& row : table_below("<!-- losses -->")) given[code_in(row.front()).front()] = row.at(1);
  CHECK(given.size() >= 20);
  // The others would take minutes.
  for (const auto& result : results("--attentions softmax,window,closure,clusters,uniform")) {
    const std::string name = result["attention"];
    CAPTURE(name);
    // Half a unit of the last digit, and as much again for what platforms round differently.
    CHECK(std::abs(result["loss"].get<double>() - std::stod(given.at(name))) <= 1e-4);
  }
}

TEST_CASE("language_model: the README lists every attention, and what is not known is refused") {
  std::set<std::string> listed;
  for (const auto& row : table_below("<!-- losses -->"))
    CHECK(listed.insert(code_in(row.front()).front()).second);
  const auto known = known_names(PHIATTN_LANGUAGE_MODEL, "--attentions");
  CHECK(listed == std::set<std::string>(known.begin(), known.end()));
  for (const std::string bad :
       {"--windows 9", "--windows", "--lengths 100", "--lengths 1024,1024", "--nonsense"}) {
    CAPTURE(bad);
    CHECK(run(PHIATTN_LANGUAGE_MODEL, bad).exit_code == 2);
  }
}
