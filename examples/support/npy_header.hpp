// The header of a .npy file, a Python dict literal such as
//     {'descr': '<f4', 'fortran_order': False, 'shape': (1024, 64), }
// in any order and spacing. What it announces is checked in npy.hpp.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace npy::detail {

struct Header {
  std::string descr;
  bool fortran_order;
  std::vector<phiattn::Index> shape;
};

/// A parser of just enough Python: strings without escapes, True and False, tuples of whole numbers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<phiattn::Index>> shape;
    const auto set = [this](auto& field, const std::string& key, auto value) {
      if (field) fail("key '" + key + "' given once");
      field = std::move(value);
    };
    expect('{');
    while (!take('}')) {
      const std::string key = string("a key in quotes, or }");
      expect(':');
      if (key == "descr") {
        set(descr, key, string("a dtype in quotes (no structured one)"));
      } else if (key == "fortran_order") {
        set(fortran_order, key, boolean());
      } else if (key == "shape") {
        set(shape, key, tuple());
      } else {
        fail("no key but 'descr', 'fortran_order' and 'shape', got '" + key + "'");
      }
      if (!take(',') && peek() != '}') fail("a comma or }");
    }
    peek();
    if (at_ < text_.size()) fail("nothing after }");
    if (!descr) fail("the key 'descr'");
    if (!fortran_order) fail("the key 'fortran_order'");
    if (!shape) fail("the key 'shape'");
    return {*descr, *fortran_order, *shape};
  }

 private:
  static constexpr char kEnd = '\0';

  [[noreturn]] void fail(const std::string& due) const {
    std::string shown(text_.substr(0, 200));
    for (char& c : shown) c = c < ' ' || c > '~' ? '?' : c;
    throw std::runtime_error("malformed header at byte " + std::to_string(at_) + ": expected " + due +
                             "; the header is: " + shown);
  }

  /// The next character that is no space.
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
    return at_ < text_.size() ? text_[at_] : kEnd;
  }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(std::string(1, c));
  }

  bool take(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string string(const std::string& due) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(due);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a closing quote");
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    if (take("True")) return true;
    if (take("False")) return false;
    fail("True or False");
  }

  std::vector<phiattn::Index> tuple() {
    std::vector<phiattn::Index> numbers;
    expect('(');
    while (!take(')')) {
      numbers.push_back(whole_number());
      take('L');  // Python 2
      if (!take(',') && peek() != ')') fail("a comma or )");
    }
    return numbers;
  }

  phiattn::Index whole_number() {
    peek();
    phiattn::Index number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc::result_out_of_range) fail("a side of the shape that fits 64 bits");
    if (error != std::errc() || number < 0) fail("a side of the shape, a whole number, or )");
    at_ += static_cast<std::size_t>(end - begin);
    return number;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline Header parse_header(std::string_view text) { return HeaderParser(text).parse(); }

}  // namespace npy::detail
