// The .npy files of the examples: what is written comes back, and what is malformed is refused by name.

#include "../../examples/support/npy.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using phiattn::Index;
using phiattn::Matrix;

namespace {

/// A file in the temporary folder, under a name of its own, gone with this object.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::random_device random;
    const std::string name = "phiattn_npy_test_" + std::to_string(random()) + "_" + std::to_string(random());
    path_ = std::filesystem::temp_directory_path() / (name + ".npy");
  }
  explicit TemporaryFile(std::string_view bytes) : TemporaryFile() {
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

std::string file_of(int version, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const std::size_t digits = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < digits; ++i) bytes += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return bytes + header + data;
}

std::string header_of(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

/// 0, 1, 2, ... as they lie in the file.
template <class T>
std::string counted(int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    const auto number = static_cast<T>(i);
    char raw[sizeof(T)];
    std::memcpy(raw, &number, sizeof(T));
    bytes.append(raw, sizeof(T));
  }
  return bytes;
}

const std::string kData = counted<float>(6);
const std::string kHeader = header_of("<f4", "False", "(2, 3)");

npy::Array read_bytes(std::string_view bytes) { return npy::read(TemporaryFile(bytes).path()); }

/// The message names the file, and says that.
void check_refused(std::string_view bytes, const std::string& message) {
  const TemporaryFile file(bytes);
  CAPTURE(message);
  CHECK_THROWS_WITH(npy::read(file.path()),
                    ContainsSubstring(file.path().string()) && ContainsSubstring(message));
}

template <class T>
void check_orders(const std::string& descr, npy::Dtype dtype) {
  CAPTURE(descr);
  const std::string data = counted<T>(24);
  const auto c = read_bytes(file_of(1, header_of(descr, "False", "(2, 3, 4)"), data));
  const auto fortran = read_bytes(file_of(1, header_of(descr, "True", "(2, 3, 4)"), data));
  CHECK(c.dtype == dtype);
  CHECK(c.shape == std::vector<Index>{2, 3, 4});
  REQUIRE(c.heads.size() == 2);
  REQUIRE(fortran.heads.size() == 2);
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 4; ++j) {
        CHECK(c.heads[static_cast<std::size_t>(h)](i, j) == 12 * h + 4 * i + j);
        CHECK(fortran.heads[static_cast<std::size_t>(h)](i, j) == h + 2 * i + 6 * j);
      }
    }
  }
  const auto flat = read_bytes(file_of(1, header_of(descr, "True", "(6, 4)"), data));
  REQUIRE(flat.heads.size() == 1);
  CHECK(flat.heads[0](5, 1) == 11);
}

}  // namespace

TEMPLATE_TEST_CASE("npy: what is written comes back", "[npy]", float, double) {
  using S = TestType;
  Matrix<S> x = Matrix<S>::Random(5, 3);
  x(0, 0) = std::numeric_limits<S>::infinity();
  x(1, 1) = std::numeric_limits<S>::denorm_min();
  const TemporaryFile file;
  npy::write(file.path(), x);
  const auto back = npy::read(file.path());
  CHECK(back.dtype == (sizeof(S) == 4 ? npy::Dtype::float32 : npy::Dtype::float64));
  CHECK(back.shape == std::vector<Index>{5, 3});
  REQUIRE(back.heads.size() == 1);
  CHECK(back.heads[0] == x.template cast<double>());

  const std::vector<Matrix<S>> heads{x, 2 * x};
  npy::write(file.path(), heads);
  const auto both = npy::read(file.path());
  CHECK(both.shape == std::vector<Index>{2, 5, 3});
  CHECK(both.heads[1] == heads[1].template cast<double>());

  npy::write(file.path(), std::vector<Matrix<S>>{x});
  CHECK(npy::read(file.path()).shape == std::vector<Index>{1, 5, 3});
}

TEST_CASE("npy: a written header is the one that NumPy writes", "[npy]") {
  const TemporaryFile file;
  npy::write(file.path(), Matrix<float>(Matrix<float>::Zero(1024, 64)));
  const std::string bytes = file.bytes();
  REQUIRE(bytes.size() == 128 + 4 * 1024 * 64);
  CHECK(bytes.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 64), }";
  CHECK(bytes.substr(10, header.size()) == header);
  CHECK(bytes.substr(10 + header.size(), 118 - header.size()) ==
        std::string(117 - header.size(), ' ') + '\n');
}

TEST_CASE("npy: what cannot be written is refused", "[npy]") {
  const TemporaryFile file;
  using Heads = std::vector<Matrix<float>>;
  CHECK_THROWS_WITH(npy::write(file.path(), Heads{}), ContainsSubstring("no heads"));
  CHECK_THROWS_WITH(npy::write(file.path(), Heads{Matrix<float>(2, 3), Matrix<float>(3, 2)}),
                    ContainsSubstring("differ in shape"));
  CHECK_THROWS_WITH(npy::write(file.path() / "deeper", Heads{Matrix<float>(2, 3)}),
                    ContainsSubstring("cannot be written"));
}

TEST_CASE("npy: every dtype in both orders", "[npy]") {
  check_orders<Eigen::half>("<f2", npy::Dtype::float16);
  check_orders<float>("<f4", npy::Dtype::float32);
  check_orders<double>("<f8", npy::Dtype::float64);
}

TEST_CASE("npy: float16 by its bits, float64 in full", "[npy]") {
  // 1.5, -2, the largest, the smallest, inf, NaN
  const std::string bits("\x00\x3E\x00\xC0\xFF\x7B\x01\x00\x00\x7C\x00\x7E", 12);
  const auto half = read_bytes(file_of(1, header_of("<f2", "False", "(1, 6)"), bits)).heads[0];
  CHECK(half(0, 0) == 1.5);
  CHECK(half(0, 1) == -2);
  CHECK(half(0, 2) == 65504);
  CHECK(half(0, 3) == 0x1p-24);
  CHECK(half(0, 4) == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(half(0, 5)));

  const TemporaryFile file;
  npy::write(file.path(), Matrix<double>(Matrix<double>::Constant(1, 1, 1.0 / 3)));
  CHECK(npy::read(file.path()).heads[0](0, 0) == 1.0 / 3);
}

TEST_CASE("npy: format versions 1.0, 2.0 and 3.0", "[npy]") {
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    CHECK(read_bytes(file_of(version, kHeader, kData)).heads[0](1, 2) == 5);
  }
  check_refused(file_of(4, kHeader, kData), "format version: got 4.0");
  std::string minor = file_of(1, kHeader, kData);
  minor[7] = '\x01';
  check_refused(minor, "format version: got 1.1");
}

TEST_CASE("npy: a header is any dict of the three keys", "[npy]") {
  for (const std::string header : {
           "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}",
           "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}",
           "  { 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : '<f4' , }   \n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }\n",
       }) {
    CAPTURE(header);
    CHECK(read_bytes(file_of(1, header, kData)).heads[0](1, 2) == 5);
  }
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

TEST_CASE("npy: a dtype other than little-endian float is refused", "[npy]") {
  for (const std::string descr : {">f4", "<i4", "|u1", "<c8", "<f16", "f4", ""}) {
    CAPTURE(descr);
    check_refused(file_of(1, header_of(descr, "False", "(2, 3)"), kData), "dtype: got '" + descr + "'");
  }
}

TEST_CASE("npy: a shape that is not of matrices is refused", "[npy]") {
  const auto refused = [](const std::string& shape, const std::string& message) {
    check_refused(file_of(1, header_of("<f4", "False", shape), kData), message);
  };
  refused("(6,)", "shape: got (6,), expected (n, d) or (heads, n, d)");
  refused("()", "shape: got ()");
  refused("(1, 1, 2, 3)", "shape: got (1, 1, 2, 3)");
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
  check_refused("PK\x03\x04 an .npz archive", "magic");
  const auto folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH(npy::read(folder), ContainsSubstring("cannot be read"));
  CHECK_THROWS_WITH(npy::read(folder / "phiattn_there_is_no_such_file.npy"),
                    ContainsSubstring("phiattn_there_is_no_such_file.npy: cannot be read"));
}

TEST_CASE("npy: the shipped heads", "[npy]") {
  for (const std::string head : {"easy_a", "easy_b", "medium_a", "medium_b", "hard_local", "hard_nonlocal"}) {
    for (const std::string part : {"q", "k", "v"}) {
      CAPTURE(head, part);
      const auto x = npy::read(std::string(PHIATTN_DATA_DIR "/heads/") + head + "_" + part + ".npy");
      CHECK(x.dtype == npy::Dtype::float16);
      CHECK(x.shape == std::vector<Index>{1024, 64});
      REQUIRE(x.heads.size() == 1);
      CHECK(x.heads[0].allFinite());
      CHECK(x.heads[0].norm() > 1);
    }
  }
}
