// Golden files: reference values as JSON, read into the types of the library.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace golden {

/// The golden file of that name, "taylor_n2.json" for one.
inline nlohmann::json load(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(PHIATTN_GOLDEN_DIR) / name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the golden file " + path.string());
  return nlohmann::json::parse(file);
}

/// [x, y, ...]
inline phiattn::Vector<double> vector(const nlohmann::json& numbers) {
  phiattn::Vector<double> x(static_cast<phiattn::Index>(numbers.size()));
  phiattn::Index i = 0;
  for (const auto& number : numbers) x(i++) = number.get<double>();
  return x;
}

/// [[row], [row], ...], rows of one length
inline phiattn::Matrix<double> matrix(const nlohmann::json& rows) {
  const auto columns = static_cast<phiattn::Index>(rows.empty() ? 0 : rows.front().size());
  phiattn::Matrix<double> x(static_cast<phiattn::Index>(rows.size()), columns);
  phiattn::Index i = 0;
  for (const auto& row : rows) {
    if (static_cast<phiattn::Index>(row.size()) != columns)
      throw std::runtime_error("golden matrix: ragged rows");
    x.row(i++) = vector(row).transpose();
  }
  return x;
}

}  // namespace golden
