// A .npy file as its header announces it, before any of its numbers is read. The format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <phiattn/core/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "files.hpp"
#include "npy_header.hpp"

namespace npy::detail {

inline std::string shown(const std::vector<phiattn::Index>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// Magic and header, which are read in turn: what has none is refused by its first bytes, however large it is.
class File {
 public:
  explicit File(const std::filesystem::path& path) : reader_(path) {
    try {
      header_ = parse_header(read_header());
    } catch (const std::runtime_error& error) {
      files::fail(path, error.what());
    }
  }

  const Header& header() const { return header_; }

  /// The numbers, as they lie in the file.
  /// @throws std::runtime_error  naming the file, unless they are as many bytes as the shape asks for
  std::string data(std::size_t item) {
    const std::string shape = shown(header_.shape);
    auto due = static_cast<phiattn::Index>(item);
    for (const phiattn::Index side : header_.shape) {
      if (side == 0) fail("shape: got " + shape + ", which holds no numbers");
      if (due > std::numeric_limits<phiattn::Index>::max() / side) {
        fail("shape: got " + shape + ", more bytes than a machine can address");
      }
      due *= side;
    }
    if (reader_.left() != static_cast<std::uintmax_t>(due)) {
      fail((reader_.left() < static_cast<std::uintmax_t>(due) ? "truncated" : "too long") +
           (": got " + std::to_string(reader_.left()) + " bytes of data, expected " + std::to_string(due) +
            " for shape " + shape));
    }
    return reader_.read(reader_.left());
  }

  [[noreturn]] void fail(const std::string& message) const { files::fail(reader_.path(), message); }

 private:
  std::string read_header() {
    constexpr std::string_view kMagic = "\x93NUMPY";
    constexpr std::size_t kLongest = 1 << 16;  // NumPy itself stops at 10000
    const std::string magic = reader_.read(kMagic.size());
    if (magic != kMagic) {
      throw std::runtime_error(std::string("not a .npy file: its first bytes are not the magic \\x93NUMPY") +
                               (magic.starts_with("PK") ? "; it may be an .npz archive: unzip it, and name "
                                                          "the .npy files that it holds"
                                                        : ""));
    }
    const std::string version = reader_.read(2);
    if (version.size() < 2) throw std::runtime_error("truncated before the format version");
    const auto number = [](char byte) { return static_cast<std::size_t>(static_cast<unsigned char>(byte)); };
    const std::size_t major = number(version[0]), minor = number(version[1]);
    if (major < 1 || major > 3 || minor != 0) {
      throw std::runtime_error("format version: got " + std::to_string(major) + '.' + std::to_string(minor) +
                               ", expected 1.0, 2.0 or 3.0");
    }
    const std::size_t digits = major == 1 ? 2 : 4;
    const std::string little = reader_.read(digits);
    if (little.size() < digits) throw std::runtime_error("truncated before the length of the header");
    std::size_t length = 0;
    for (std::size_t i = digits; i-- > 0;) length = length * 256 + number(little[i]);
    if (length > kLongest) {
      throw std::runtime_error("length of the header: got " + std::to_string(length) + " bytes, expected " +
                               std::to_string(kLongest) + " at most");
    }
    std::string header = reader_.read(length);
    if (header.size() < length) {
      throw std::runtime_error("truncated header: got " + std::to_string(header.size()) +
                               " bytes, expected " + std::to_string(length));
    }
    return header;
  }

  files::Reader reader_;
  Header header_;
};

}  // namespace npy::detail
