// The texts of a model's tokens.
#pragma once

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/files.hpp"

namespace examples {

namespace detail {

/// A parser of a JSON array of strings, of the characters of the basic plane.
class StringsParser {
 public:
  explicit StringsParser(std::string_view text) : text_(text) {}

  std::vector<std::string> parse() {
    std::vector<std::string> strings;
    expect('[');
    do {
      expect('"');
      strings.push_back(rest_of_string());
    } while (take(','));
    expect(']');
    return strings;
  }

 private:
  char next() {
    if (at_ == text_.size()) throw std::runtime_error("ends too early");
    return text_[at_++];
  }

  bool take(char c) {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (take(c)) return;
    throw std::runtime_error("at byte " + std::to_string(at_) + ": expected " + c);
  }

  std::string rest_of_string() {
    std::string string;
    for (char c = next(); c != '"'; c = next()) string += c == '\\' ? escaped() : std::string(1, c);
    return string;
  }

  std::string escaped() {
    const char c = next();
    if (c == 'u') return utf8(four_digits());
    if (c == 'n') return "\n";
    if (c == 't') return "\t";
    if (c == 'r') return "\r";
    if (c == '"' || c == '\\' || c == '/') return std::string(1, c);
    throw std::runtime_error("at byte " + std::to_string(at_) + ": an escape that is not known");
  }

  unsigned four_digits() {
    std::string digits;
    while (digits.size() < 4) digits += next();
    unsigned code = 0;
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, code, 16).ptr != end) {
      throw std::runtime_error("at byte " + std::to_string(at_) + ": got \\u" + digits +
                               ", expected four hexadecimal digits");
    }
    return code;
  }

  static std::string utf8(unsigned code) {
    const auto tail = [code](unsigned shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
    return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

class Vocabulary {
 public:
  /// @param path  a JSON array of the tokens' texts
  /// @throws std::runtime_error  if it cannot be read, is malformed, or holds another number of texts than `size`
  Vocabulary(const std::filesystem::path& path, std::size_t size) {
    const std::string file = files::read_all(path);
    try {
      texts_ = detail::StringsParser(file).parse();
    } catch (const std::exception& error) {
      files::fail(path, error.what());
    }
    if (texts_.size() != size) {
      files::fail(path, "got " + std::to_string(texts_.size()) + " texts of tokens, expected " +
                            std::to_string(size));
    }
  }

  std::string text(std::span<const int> tokens) const {
    std::string text;
    for (const int token : tokens) text += texts_[static_cast<std::size_t>(token)];
    return text;
  }

 private:
  std::vector<std::string> texts_;
};

}  // namespace examples
