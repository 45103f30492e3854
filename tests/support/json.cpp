#include "support/json.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace golden {

nlohmann::json load(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(PHIATTN_GOLDEN_DIR) / name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read the golden file " + path.string());
  return nlohmann::json::parse(file);
}

phiattn::Vector<double> vector(const nlohmann::json& numbers) {
  phiattn::Vector<double> x(static_cast<phiattn::Index>(numbers.size()));
  phiattn::Index i = 0;
  for (const auto& number : numbers) x(i++) = number.get<double>();
  return x;
}

phiattn::Matrix<double> matrix(const nlohmann::json& rows) {
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
