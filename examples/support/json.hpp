// Just enough JSON to read the flat objects that this project writes, and to print results.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
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

/// How many bytes the character at the front of text takes in UTF-8 (RFC 3629), 0 if they are none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // Neither longer than need be, nor a surrogate, nor beyond the last character.
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (lead < 0xC2 || lead > 0xF4 || byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

/// Bytes that are no UTF-8, as a model may write them, become the replacement character.
inline std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t n; !text.empty(); text.remove_prefix(n)) {
    const char c = text.front();
    n = utf8_length(text);
    char escaped[8];
    if (n == 0) {
      quoted += "\xEF\xBF\xBD";
      n = 1;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped;
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += text.substr(0, n);
    }
  }
  return quoted + '"';
}

}  // namespace examples
