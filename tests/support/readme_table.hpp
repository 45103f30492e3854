// Tables of the README, to be compared with what programs measure.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace support {

using Row = std::vector<std::string>;

/// The rows of the table below `marker`, cut at the bars, with their blanks trimmed; heading and rule left out.
inline std::vector<Row> table_below(const std::string& marker) {
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
      row.push_back(first == std::string::npos ? ""
                                               : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
    rows.push_back(row);
  }
  REQUIRE(rows.size() > 2);
  rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

/// What stands between backticks in a cell.
inline std::vector<std::string> code_in(const std::string& cell) {
  std::vector<std::string> words;
  for (std::size_t begin = cell.find('`'); begin != std::string::npos; begin = cell.find('`', begin)) {
    const std::size_t end = cell.find('`', begin + 1);
    words.push_back(cell.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return words;
}

}  // namespace support
