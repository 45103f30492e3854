// The .npy files of the examples: what is written comes back, and what others wrote is read.

#include "../../examples/support/npy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/npy_bytes.hpp"
#include "support/temporary_file.hpp"

using namespace support;
using phiattn::Index;
using phiattn::Matrix;

namespace {

npy::Array read_bytes(std::string_view bytes) { return npy::read(TemporaryFile(bytes).path()); }

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
  npy::write(file.path(), heads, {2});
  const auto both = npy::read(file.path());
  CHECK(both.shape == std::vector<Index>{2, 5, 3});
  CHECK(both.heads[1] == heads[1].template cast<double>());

  npy::write(file.path(), std::vector<Matrix<S>>{x}, {1});
  CHECK(npy::read(file.path()).shape == std::vector<Index>{1, 5, 3});

  npy::write(file.path(), heads, {2, 1});
  const auto batches = npy::read(file.path());
  CHECK(batches.shape == std::vector<Index>{2, 1, 5, 3});
  CHECK(batches.heads[1] == both.heads[1]);
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

TEST_CASE("npy: big-endian numbers", "[npy]") {
  const std::string bits("\x3E\x00\xC0\x00", 4);
  const auto half = read_bytes(file_of(1, header_of(">f2", "False", "(1, 2)"), bits)).heads[0];
  CHECK(half == (Matrix<double>(1, 2) << 1.5, -2).finished());
  for (const std::string descr : {"f4", "f8"}) {
    CAPTURE(descr);
    std::string data = descr == "f4" ? counted<float>(6) : counted<double>(6);
    const std::size_t size = data.size() / 6;
    for (std::size_t i = 0; i < data.size(); i += size) {
      std::reverse(data.begin() + static_cast<long>(i), data.begin() + static_cast<long>(i + size));
    }
    const auto big = read_bytes(file_of(1, header_of(">" + descr, "False", "(2, 3)"), data));
    CHECK(big.heads[0] == (Matrix<double>(2, 3) << 0, 1, 2, 3, 4, 5).finished());
  }
}

TEST_CASE("npy: two bytes of no type that NumPy knows are bfloat16", "[npy]") {
  const std::string bits("\xC0\x3F\x00\xC0\x80\x7F", 6);  // 1.5, -2, inf
  for (const std::string descr : {"|V2", "<V2"}) {
    const auto array = read_bytes(file_of(1, header_of(descr, "False", "(1, 3)"), bits));
    CHECK(array.dtype == npy::Dtype::bfloat16);
    CHECK(array.heads[0](0, 0) == 1.5);
    CHECK(array.heads[0](0, 1) == -2);
    CHECK(array.heads[0](0, 2) == std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("npy: a batch of heads in both orders", "[npy]") {
  for (const bool fortran : {false, true}) {
    const auto array = read_bytes(
        file_of(1, header_of("<f4", fortran ? "True" : "False", "(2, 3, 2, 2)"), counted<float>(24)));
    CHECK(array.leading() == std::vector<Index>{2, 3});
    REQUIRE(array.heads.size() == 6);
    for (int b = 0; b < 2; ++b) {
      for (int h = 0; h < 3; ++h) {
        const auto& head = array.heads[static_cast<std::size_t>(3 * b + h)];
        CHECK(head(1, 0) == (fortran ? b + 2 * (h + 3) : 12 * b + 4 * h + 2));
        CHECK(head(0, 1) == (fortran ? b + 2 * (h + 3 * 2) : 12 * b + 4 * h + 1));
      }
    }
  }
}

TEST_CASE("npy: format versions 1.0, 2.0 and 3.0", "[npy]") {
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    CHECK(read_bytes(file_of(version, kHeader, kData)).heads[0](1, 2) == 5);
  }
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
