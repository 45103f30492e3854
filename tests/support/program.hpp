// Runs a program of this project.
#pragma once

#include <cstdio>
#include <string>

#include "support/catch.hpp"

namespace support {

struct Run {
  std::string output;  // errors included
  int exit_code;
};

inline Run run(const std::string& program, const std::string& arguments) {
  Run result{};
  std::FILE* pipe = popen(("\"" + program + "\" " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  char text[4096];
  while (const std::size_t size = std::fread(text, 1, sizeof text, pipe)) result.output.append(text, size);
  result.exit_code = pclose(pipe) / 256;
  return result;
}

}  // namespace support
