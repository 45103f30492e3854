// The README's tables of maps cannot rot: they name every map that compare knows, and the errors in them are those
// that compare measures. And compare speaks JSON, and refuses what it does not know.

#include <algorithm>
#include <cmath>
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

std::set<std::string> names_in(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    for (const std::string& name : code_in(row.front())) CHECK(names.insert(name).second);
  }
  return names;
}

Run compare(const std::string& arguments) { return run(PHIATTN_COMPARE, arguments); }

nlohmann::json results(const std::string& arguments) {
  const auto [output, exit_code] = compare("--json --features 256 " + arguments);
  REQUIRE(exit_code == 0);
  return nlohmann::json::parse(output);
}

std::string name_of(const Row& row) { return code_in(row.front()).front(); }

/// Half a unit of the last digit, and as much again for what platforms round differently.
constexpr double kLastDigit = 1e-3;

std::set<std::string> known_maps() {
  const auto names = known_names(PHIATTN_COMPARE, "--maps");
  return {names.begin(), names.end()};
}

}  // namespace

TEST_CASE("the README's table of maps names every map that compare knows, once") {
  CHECK(names_in(table_below("<!-- maps -->")) == known_maps());
}

TEST_CASE("the README's errors are those that compare measures, to the digits given") {
  const std::vector<Row> rows = table_below("<!-- errors -->");
  std::set<std::string> due = known_maps();
  for (const char* slow : {"taylor3", "limit3", "limit4"}) due.erase(slow);  // seconds to minutes a head
  CHECK(names_in(rows) == due);

  std::string maps;
  for (const std::string& name : due) maps += (maps.empty() ? "" : ",") + name;
  const std::vector<std::string> heads{"easy_a", "medium_a", "hard_local"};
  std::size_t checked = 0;
  for (const auto& result : results("--heads easy_a,medium_a,hard_local --maps " + maps)) {
    const std::string head = result["head"];
    const auto column = static_cast<std::size_t>(std::find(heads.begin(), heads.end(), head) - heads.begin());
    for (const Row& row : rows) {
      if (result["name"] != name_of(row)) continue;
      const std::string& cell = row.at(2 + column);
      CAPTURE(head, name_of(row), cell);
      CHECK((cell == "breaks") == (result["nonpositive_rows"] > 0));
      if (cell == "breaks") continue;
      CHECK(std::abs(result["output_error"].get<double>() - std::stod(cell)) <= kLastDigit);
      ++checked;
    }
  }
  CHECK(checked > rows.size());
}

TEST_CASE("the README's ranges over ten seeds are those that compare measures") {
  std::map<std::string, std::string> ranges;
  std::string maps;
  for (const Row& row : table_below("<!-- errors -->")) {
    if (row.at(5).empty()) continue;
    ranges[name_of(row)] = row.at(5);
    maps += (maps.empty() ? "" : ",") + name_of(row);
  }
  CHECK(ranges.size() >= 15);

  struct Seen {
    double least = INFINITY, most = 0;
    bool breaks = false;
  };
  std::map<std::string, Seen> seen;
  for (int seed = 0; seed < 10; ++seed) {
    for (const auto& result : results("--heads easy_a --seed " + std::to_string(seed) + " --maps " + maps)) {
      Seen& map = seen[result["name"]];
      map.breaks = map.breaks || result["nonpositive_rows"] > 0;
      if (map.breaks) continue;
      map.least = std::min(map.least, result["output_error"].get<double>());
      map.most = std::max(map.most, result["output_error"].get<double>());
    }
  }
  for (const auto& [name, range] : ranges) {
    CAPTURE(name, range);
    CHECK((range == "breaks") == seen[name].breaks);
    if (range == "breaks") continue;
    const std::string to = "–";
    REQUIRE(range.find(to) != std::string::npos);
    CHECK(std::abs(seen[name].least - std::stod(range)) <= kLastDigit);
    CHECK(std::abs(seen[name].most - std::stod(range.substr(range.find(to) + to.size()))) <= kLastDigit);
  }
}
