// The README's tables of maps cannot rot: they name every map that compare knows, and the errors in them are those
// that compare measures.

#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "../../examples/support/inputs.hpp"
#include "../../examples/support/known_maps.hpp"
#include "support/catch.hpp"

namespace {

using Row = std::vector<std::string>;

/// The rows of the table below `marker`, cut at the bars, with their blanks trimmed; heading and rule left out.
std::vector<Row> table_below(const std::string& marker) {
  std::ifstream readme(PHIATTN_README);
  std::string line;
  while (std::getline(readme, line) && line.find(marker) == std::string::npos) {
  }
  std::vector<Row> rows;
  while (std::getline(readme, line) && (line.empty() || line[0] != '|')) {
  }
  for (; !line.empty() && line[0] == '|'; std::getline(readme, line)) {
    Row row;
    std::size_t begin = 1;
    for (std::size_t bar; (bar = line.find('|', begin)) != std::string::npos; begin = bar + 1) {
      if (line[bar - 1] == '\\') continue;
      const std::string cell = line.substr(begin, bar - begin);
      const auto first = cell.find_first_not_of(' ');
      row.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
    rows.push_back(row);
  }
  REQUIRE(rows.size() > 2);
  rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

/// What stands between backticks in a cell.
std::vector<std::string> code_in(const std::string& cell) {
  std::vector<std::string> words;
  for (std::size_t begin = cell.find('`'); begin != std::string::npos; begin = cell.find('`', begin)) {
    const std::size_t end = cell.find('`', begin + 1);
    words.push_back(cell.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return words;
}

std::set<std::string> names_in(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    for (const std::string& name : code_in(row.front())) CHECK(names.insert(name).second);
  }
  return names;
}

}  // namespace

TEST_CASE("the README's table of maps names every map that compare knows, once") {
  std::set<std::string> known;
  for (const examples::Map& map : examples::known_maps(0)) known.insert(map.name);
  CHECK(names_in(table_below("<!-- maps -->")) == known);
}

TEST_CASE("the README's errors are those that compare measures, to the digits given") {
  const std::vector<Row> rows = table_below("<!-- errors -->");
  const std::vector<examples::Map> known = examples::known_maps(0);
  // Degrees 3 and 4 take seconds to minutes a head.
  std::set<std::string> due;
  for (const examples::Map& map : known) due.insert(map.name);
  for (const char* slow : {"taylor3", "limit3", "limit4"}) due.erase(slow);
  CHECK(names_in(rows) == due);

  const examples::Heads inputs =
      examples::read_shipped_heads(PHIATTN_DATA_DIR "/heads", {"easy_a", "medium_a", "hard_local"});
  for (std::size_t column = 0; column < inputs.heads.size(); ++column) {
    const examples::Head& head = inputs.heads[column];
    const examples::Trial trial(head, *head.causal);
    for (const Row& row : rows) {
      const std::string name = code_in(row.front()).front();
      const std::string& cell = row.at(2 + column);
      CAPTURE(head.name, name, cell);
      for (const examples::Map& map : known) {
        if (map.name != name) continue;
        phiattn::Matrix<float> out;
        const examples::Result result = map.run(trial, 256, out);
        if (cell == "breaks") {
          CHECK(!result.status.ok());
        } else {
          CHECK(result.status.ok());
          // Half a unit of the last digit, and as much again for what platforms round differently.
          CHECK(std::abs(result.output_error - std::stod(cell)) <= 1e-3);
        }
      }
    }
  }
}
