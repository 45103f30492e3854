// The programs as a whole: what they take in, and what they do when they cannot write.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "../../examples/support/npy.hpp"
#include "support/catch.hpp"
#include "support/program.hpp"
#include "support/temporary_file.hpp"

using namespace support;
using phiattn::Index;
using phiattn::Matrix;

TEST_CASE("programs: output that cannot be written is an error") {
  if (!std::filesystem::exists("/dev/full")) return;
  const auto into_full = [](const std::string& program, const std::string& arguments) {
    return run("sh", "-c '\"" + program + "\" " + arguments + " >/dev/full'");
  };
  for (const auto& [output, exit_code] :
       {into_full(PHIATTN_COMPARE, "--help"), into_full(PHIATTN_LANGUAGE_MODEL, "--help"),
        into_full(PHIATTN_LLAMA, "--help"),
        into_full(PHIATTN_COMPARE, "--heads easy_a --causal no --maps uniform")}) {
    CHECK(exit_code == 2);
    CHECK_THAT(output, ContainsSubstring("standard output: cannot be written"));
  }
}

TEST_CASE("compare: an endless file is refused before it is read") {
  if (!std::filesystem::exists("/dev/zero")) return;
  const auto [output, exit_code] = run(PHIATTN_COMPARE, "--q /dev/zero --k /dev/zero --v /dev/zero");
  CHECK(exit_code == 2);
  CHECK_THAT(output, ContainsSubstring("/dev/zero: cannot be read"));
}

TEST_CASE("compare: a batch of heads that share keys goes out as it came in") {
  const auto heads = [](std::size_t count, Index n) {
    std::vector<Matrix<float>> all;
    while (all.size() < count) all.push_back(Matrix<float>::Random(n, 8));
    return all;
  };
  const TemporaryFile q, k, v, out;
  npy::write(q.path(), heads(8, 5), {2, 4});
  npy::write(k.path(), heads(4, 6), {2, 2});
  const auto values = heads(4, 6);
  npy::write(v.path(), values, {2, 2});
  const auto [output, exit_code] = run(
      PHIATTN_COMPARE, "--maps uniform --causal no --q " + q.path().string() + " --k " + k.path().string() +
                           " --v " + v.path().string() + " --out " + out.path().string());
  CAPTURE(output);
  REQUIRE(exit_code == 0);
  const npy::Array read = npy::read(out.path());
  CHECK(read.shape == std::vector<Index>{2, 4, 5, 8});
  for (std::size_t h = 0; h < 8; ++h) {
    CHECK(read.heads[h].row(0).isApprox(values[h / 2].colwise().mean().cast<double>(), 1e-5));
  }
}
