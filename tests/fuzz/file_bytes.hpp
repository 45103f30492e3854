// Files of any content.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "support/npy_bytes.hpp"
#include "support/temporary_file.hpp"

namespace fuzz {

class File {
 public:
  explicit File(const std::string& bytes) : file_(bytes) {}

  /// Calls read(path), which may throw a std::runtime_error that begins with the path, and nothing else.
  template <class Read>
  void read(const Read& read) const {
    try {
      read(file_.path());
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()).starts_with(file_.path().string())) return;
      std::fprintf(stderr, "does not name its file: %s\n", error.what());
      std::abort();
    }
  }

 private:
  support::TemporaryFile file_;
};

}  // namespace fuzz
