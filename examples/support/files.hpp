// Reading files that a user named: whatever is wrong with one, the message begins with its path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace files {

[[noreturn]] inline void fail(const std::filesystem::path& path, const std::string& message) {
  throw std::runtime_error(path.string() + ": " + message);
}

/// A file of known size. A pipe would block, and a device may never end: they are not opened.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) fail(path, "cannot be read: there is no such file");
    if (!std::filesystem::is_regular_file(status)) {
      fail(path, "cannot be read: a folder, pipe or device, expected a regular file");
    }
    file_.open(path, std::ios::binary);
    left_ = std::filesystem::file_size(path, error);
    if (!file_ || error) fail(path, "cannot be read");
  }

  const std::filesystem::path& path() const { return path_; }

  /// Bytes that are not read yet.
  std::uintmax_t left() const { return left_; }

  /// The next bytes, `most` of them if so many are left.
  std::string read(std::uintmax_t most) {
    std::string bytes(static_cast<std::size_t>(most < left_ ? most : left_), '\0');
    if (!file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) fail(path_, "reading failed");
    left_ -= bytes.size();
    return bytes;
  }

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::uintmax_t left_ = 0;
};

inline std::string read_all(const std::filesystem::path& path) {
  Reader reader(path);
  return reader.read(reader.left());
}

}  // namespace files
