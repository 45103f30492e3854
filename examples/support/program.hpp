// What the main functions of the examples share.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"

namespace examples {

/// Runs a program on its arguments, and says on stderr what stopped it.
/// @return the exit code: 2 if anything did, output that could not be written included
inline int run_program(const std::string& name, std::string_view usage, int argc, char** argv,
                       const std::function<void(const std::vector<std::string>&)>& program) {
  try {
    program({argv + 1, argv + argc});
    // A full disk shows here at the latest.
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      throw std::runtime_error("standard output: cannot be written");
    }
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s: %s\n%s", name.c_str(), error.what(), std::string(usage).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
  }
  return 2;
}

}  // namespace examples
