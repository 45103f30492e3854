// The .npy files of the examples: what is malformed is refused by name.

#include "../../examples/support/npy.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/npy_bytes.hpp"
#include "support/temporary_file.hpp"

using namespace support;
using phiattn::Matrix;

namespace {

/// The message names the file, and says that.
void check_refused(std::string_view bytes, const std::string& message) {
  const TemporaryFile file(bytes);
  CAPTURE(message);
  CHECK_THROWS_WITH(npy::read(file.path()),
                    ContainsSubstring(file.path().string()) && ContainsSubstring(message));
}

}  // namespace

TEST_CASE("npy: what cannot be written is refused", "[npy]") {
  const TemporaryFile file;
  using Heads = std::vector<Matrix<float>>;
  CHECK_THROWS_WITH(npy::write(file.path(), Heads{}, {}), ContainsSubstring("no heads"));
  CHECK_THROWS_WITH(npy::write(file.path(), Heads{Matrix<float>(2, 3), Matrix<float>(3, 2)}, {2}),
                    ContainsSubstring("differ in shape"));
  CHECK_THROWS_WITH(npy::write(file.path() / "deeper", Heads{Matrix<float>(2, 3)}, {}),
                    ContainsSubstring("cannot be written"));
  CHECK_THROWS_WITH(npy::write(file.path(), Heads(6, Matrix<float>(2, 3)), {2, 2}),
                    ContainsSubstring("got 6 heads to write, expected (2, 2)"));
}

TEST_CASE("npy: a format version that is not known is refused", "[npy]") {
  check_refused(file_of(4, kHeader, kData), "format version: got 4.0");
  std::string minor = file_of(1, kHeader, kData);
  minor[7] = '\x01';
  check_refused(minor, "format version: got 1.1");
}

TEST_CASE("npy: a malformed header is refused", "[npy]") {
  const auto refused = [](const std::string& header, const std::string& message) {
    check_refused(file_of(1, header, kData), message);
  };
  refused("", "malformed header at byte 0: expected {");
  refused("{'descr': '<f4', 'fortran_order': False}", "expected the key 'shape'");
  refused("{'descr': '<f4', 'shape': (2, 3)}", "expected the key 'fortran_order'");
  refused("{'fortran_order': False, 'shape': (2, 3)}", "expected the key 'descr'");
  refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "given once");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", "got 'x'");
  refused("{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}", "expected a comma or }");
  refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}", "expected True or False");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}", "expected (");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "expected a comma or )");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.5)}", "expected a comma or )");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}", "a whole number");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", "expected a comma or )");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "expected a comma or }");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", "expected nothing after }");
  refused("{'descr': '<f4, fortran_order: False, shape: (2, 3)}", "expected a closing quote");
  refused("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 3)}", "no structured one");
  refused("\x93\x01{", "malformed header");
}

TEST_CASE("npy: a dtype that is not floating-point is refused", "[npy]") {
  for (const std::string descr : {"=f4", "<i4", "|u1", "<c8", "<f16", "|f4", "|V4", ">V2", "f4", ""}) {
    CAPTURE(descr);
    check_refused(file_of(1, header_of(descr, "False", "(2, 3)"), kData), "dtype: got '" + descr + "'");
  }
}

TEST_CASE("npy: a shape that is not of matrices is refused", "[npy]") {
  const auto refused = [](const std::string& shape, const std::string& message) {
    check_refused(file_of(1, header_of("<f4", "False", shape), kData), message);
  };
  refused("(6,)", "shape: got (6,), expected (n, d), (heads, n, d) or (batch, heads, n, d)");
  refused("()", "shape: got ()");
  refused("(1, 1, 1, 2, 3)", "shape: got (1, 1, 1, 2, 3)");
  refused("(0, 3)", "holds no numbers");
  refused("(9223372036854775807, 0, 3)", "more bytes than");
  refused("(4294967296, 4294967296)", "more bytes than");
  refused("(3037000500, 3037000500)", "more bytes than");
  refused("(9223372036854775808, 1)", "fits 64 bits");
  refused("(1000000000, 1000000)", "truncated: got 24 bytes of data, expected 4000000000000000");
}

TEST_CASE("npy: every truncation is refused", "[npy]") {
  for (const int version : {1, 2}) {
    const std::string whole = file_of(version, kHeader, kData);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const TemporaryFile file(whole.substr(0, size));
      CAPTURE(version, size);
      CHECK_THROWS_AS(npy::read(file.path()), std::runtime_error);
    }
    check_refused(whole.substr(0, 3), "magic");
    check_refused(whole.substr(0, 7), "format version");
    check_refused(whole.substr(0, 9), "length of the header");
    check_refused(whole.substr(0, 30), "truncated header");
    check_refused(whole.substr(0, whole.size() - 1), "truncated: got 23 bytes of data, expected 24");
    check_refused(whole + '\0', "too long: got 25 bytes of data, expected 24");
  }
}

TEST_CASE("npy: what is no such file is refused", "[npy]") {
  check_refused("", "magic");
  check_refused("PK\x03\x04 an .npz archive", "unzip it");
  check_refused(std::string("\x93NUMPY\x02\x00\x00\x00\x00\x40", 12), "length of the header: got 1073741824");
  const auto folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH(npy::read(folder), ContainsSubstring("cannot be read"));
  // Such a file has no end, and such a pipe no beginning.
  if (std::filesystem::exists("/dev/zero")) {
    CHECK_THROWS_WITH(npy::read("/dev/zero"),
                      ContainsSubstring("/dev/zero: cannot be read: a folder, pipe or"));
  }
  const TemporaryFile file;
  const std::filesystem::path pipe = file.path().string() + ".pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(npy::read(pipe), ContainsSubstring(pipe.string()) && ContainsSubstring("cannot be read"));
  std::filesystem::remove(pipe);
  CHECK_THROWS_WITH(npy::read(folder / "phiattn_there_is_no_such_file.npy"),
                    ContainsSubstring("phiattn_there_is_no_such_file.npy: cannot be read"));
}
