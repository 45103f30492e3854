// Files that tests write.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

namespace support {

/// A file in the temporary folder, under a name of its own, gone with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes = {}) {
    std::random_device random;
    const std::string name = "phiattn_test_" + std::to_string(random()) + "_" + std::to_string(random());
    path_ = std::filesystem::temp_directory_path() / (name + ".npy");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace support
