// The tokenizer file of llama2.c: texts of tokens, and scores by which a text is cut into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../support/files.hpp"
#include "tokens.hpp"

namespace examples {

/// A byte-pair encoding: 0 is unknown, 1 begins a text, 2 ends it, 3 to 258 are bytes.
class Tokenizer {
 public:
  /// @throws std::runtime_error  naming the file, if it is malformed or holds another number of tokens than `size`
  Tokenizer(const std::filesystem::path& path, std::size_t size) {
    const std::string file = files::read_all(path);
    std::string_view left = file;
    const auto next = [&](std::size_t bytes) {
      if (left.size() < bytes) {
        files::fail(path, "ends within token " + std::to_string(texts_.size()) + ", expected " +
                              std::to_string(size) + " tokens");
      }
      const std::string_view taken = left.substr(0, bytes);
      left.remove_prefix(bytes);
      return taken;
    };
    const auto integer = [&] { return number<std::int32_t>(next(4)); };
    const std::int32_t longest = integer();
    while (texts_.size() < size) {
      scores_.push_back(number<float>(next(4)));
      const std::int32_t length = integer();
      if (length < 0 || length > longest) {
        files::fail(path, "token " + std::to_string(texts_.size()) + ": got a length of " +
                              std::to_string(length) + ", expected 0 to " + std::to_string(longest));
      }
      texts_.emplace_back(next(static_cast<std::size_t>(length)));
      tokens_.emplace(texts_.back(), static_cast<int>(texts_.size()) - 1);
    }
    if (!left.empty()) files::fail(path, "goes on behind token " + std::to_string(size - 1));
  }

  /// Characters, or their bytes, of which the pair of the best score is joined, as long as there is one.
  Tokens encode(const std::string& text) const {
    Tokens tokens{kBegin};
    const std::string spaced = text.empty() ? text : ' ' + text;
    for (std::size_t at = 0; at < spaced.size();) {
      std::size_t length = 1;
      while (at + length < spaced.size() && (spaced[at + length] & 0xC0) == 0x80) ++length;  // UTF-8 goes on
      const std::string character = spaced.substr(at, length);
      if (const auto found = tokens_.find(character); found != tokens_.end()) {
        tokens.push_back(found->second);
      } else {
        for (const char c : character) tokens.push_back(of_byte(c));
      }
      at += length;
    }
    while (join_best(tokens)) {
    }
    return tokens;
  }

  std::string decode(std::span<const int> tokens) const {
    std::string text;
    for (const int token : tokens) {
      if (token >= kFirstByte && token < kFirstByte + 256) {
        text += static_cast<char>(token - kFirstByte);  // its text is like <0x0A>
      } else if (token != kBegin && token != kEnd) {
        text += texts_[static_cast<std::size_t>(token)];
      }
    }
    return text;
  }

 private:
  static constexpr int kUnknown = 0, kBegin = 1, kEnd = 2, kFirstByte = 3;

  template <class T>
  static T number(std::string_view bytes) {
    T x;
    std::memcpy(&x, bytes.data(), sizeof x);
    return x;
  }

  int of_byte(char c) const {
    const int token = kFirstByte + static_cast<unsigned char>(c);
    return static_cast<std::size_t>(token) < texts_.size() ? token : kUnknown;
  }

  bool join_best(Tokens& tokens) const {
    std::size_t best = tokens.size();
    int joined = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto found = tokens_.find(texts_[static_cast<std::size_t>(tokens[i])] +
                                      texts_[static_cast<std::size_t>(tokens[i + 1])]);
      if (found == tokens_.end()) continue;
      if (best < tokens.size() && score(found->second) <= score(joined)) continue;
      best = i;
      joined = found->second;
    }
    if (best == tokens.size()) return false;
    tokens[best] = joined;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    return true;
  }

  float score(int token) const { return scores_[static_cast<std::size_t>(token)]; }

  std::vector<std::string> texts_;
  std::vector<float> scores_;
  std::unordered_map<std::string, int> tokens_;
};

}  // namespace examples
