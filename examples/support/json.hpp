// Just enough JSON to read the flat objects that this project writes, and to print results.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

namespace examples {

/// What stands behind "key": in a flat object, without quotes. This project writes those files, so no JSON
/// library is needed.
/// @throws std::runtime_error  naming the file, if there is no such key
inline std::string json_member(const std::string& object, const std::string& key, const std::string& file) {
  const std::size_t found = object.find('"' + key + "\": ");
  if (found == std::string::npos) throw std::runtime_error(file + ": an object without \"" + key + '"');
  const std::size_t begin = found + key.size() + 4;
  const std::string value = object.substr(begin, object.find_first_of(",\n}", begin) - begin);
  return value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
}

/// @throws std::runtime_error  naming the file and the key, if there is none or it is none from `least` to `most`
template <class T>
T json_whole_number(const std::string& object, const std::string& key, const std::string& file, T least,
                    T most) {
  const std::string text = json_member(object, key, file);
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    throw std::runtime_error(file + ": \"" + key + "\": got " + text + ", expected a whole number from " +
                             std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

/// A number as `pattern` of printf has it.
inline std::string format(const char* pattern, double x) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, x);
  return text;
}

inline std::string json_number(double x) { return std::isfinite(x) ? format("%.9g", x) : "null"; }

inline std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped;
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace examples
