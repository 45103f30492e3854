// Golden files: reference values as JSON, read into the types of the library.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <nlohmann/json.hpp>
#include <string>

namespace golden {

/// The golden file of that name, "taylor_n2.json" for one.
nlohmann::json load(const std::string& name);

/// [x, y, ...]
phiattn::Vector<double> vector(const nlohmann::json& numbers);

/// [[row], [row], ...], rows of one length
phiattn::Matrix<double> matrix(const nlohmann::json& rows);

}  // namespace golden
