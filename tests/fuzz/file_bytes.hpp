// Files of any content.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "support/npy_bytes.hpp"
#include "support/temporary_file.hpp"

namespace fuzz {

/// One file, written anew each time: to make one takes longer than to read it.
class File {
 public:
  explicit File(const std::string& bytes) { std::ofstream(file().path(), std::ios::binary) << bytes; }

  /// Calls read(path), which may throw a std::runtime_error that begins with the path, and nothing else.
  template <class Read>
  void read(const Read& read) const {
    try {
      read(file().path());
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()).starts_with(file().path().string())) return;
      std::fprintf(stderr, "does not name its file: %s\n", error.what());
      std::abort();
    }
  }

 private:
  static const support::TemporaryFile& file() {
    static const support::TemporaryFile one;
    return one;
  }
};

}  // namespace fuzz
