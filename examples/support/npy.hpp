// NumPy's .npy files: reading and writing matrices of float16, float32 and float64, and nothing else.
// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. The header's own
// parser is npy_header.hpp; who reads files are heads/inputs.hpp and model/tensor_file.hpp.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "npy_header.hpp"

namespace npy {

static_assert(std::endian::native == std::endian::little, "npy: written for little-endian machines");

using phiattn::Index;
using phiattn::Matrix;

enum class Dtype { float16, float32, float64 };

/// The content of a file: (n, d) is one head, (heads, n, d) several. Every dtype widens to double exactly.
struct Array {
  Dtype dtype;
  std::vector<Index> shape;
  std::vector<Matrix<double>> heads;
};

namespace detail {

[[noreturn]] inline void fail(const std::filesystem::path& path, const std::string& message) {
  throw std::runtime_error(path.string() + ": " + message);
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) fail(path, "cannot be read as a file");
  std::ostringstream bytes;
  if (file.peek() != std::ifstream::traits_type::eof()) bytes << file.rdbuf();
  if (file.bad() || !bytes) fail(path, "reading failed");
  return std::move(bytes).str();
}

/// Takes magic, version and header off the front of `bytes` and returns the header, a Python dict.
inline std::string_view take_header(std::string_view& bytes) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kVersionSize = 2;
  if (!bytes.starts_with(kMagic)) {
    throw std::runtime_error("not a .npy file: its first bytes are not the magic \\x93NUMPY");
  }
  bytes.remove_prefix(kMagic.size());
  const auto byte = [&bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < kVersionSize) throw std::runtime_error("truncated before the format version");
  const auto version = std::to_string(byte(0)) + "." + std::to_string(byte(1));
  if (byte(0) < 1 || byte(0) > 3 || byte(1) != 0) {
    throw std::runtime_error("format version: got " + version + ", expected 1.0, 2.0 or 3.0");
  }
  const std::size_t digits = byte(0) == 1 ? 2 : 4;
  bytes.remove_prefix(kVersionSize);
  if (bytes.size() < digits) throw std::runtime_error("truncated before the length of the header");
  std::size_t length = 0;
  for (std::size_t i = digits; i-- > 0;) length = length * 256 + byte(i);
  bytes.remove_prefix(digits);
  if (bytes.size() < length) {
    throw std::runtime_error("truncated header: got " + std::to_string(bytes.size()) + " bytes, expected " +
                             std::to_string(length));
  }
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

inline std::string shown(const std::vector<Index>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

inline Dtype dtype_of(const std::string& descr) {
  if (descr == "<f2") return Dtype::float16;
  if (descr == "<f4") return Dtype::float32;
  if (descr == "<f8") return Dtype::float64;
  throw std::runtime_error("dtype: got '" + descr + "', expected little-endian float: '<f2', '<f4' or '<f8'");
}

/// @throws std::runtime_error  unless the data are exactly the bytes that shape and dtype ask for
inline void check_size(const std::vector<Index>& shape, std::size_t item, std::size_t came) {
  if (shape.size() != 2 && shape.size() != 3) {
    throw std::runtime_error("shape: got " + shown(shape) + ", expected (n, d) or (heads, n, d)");
  }
  auto due = static_cast<Index>(item);
  for (const Index side : shape) {
    if (side == 0) throw std::runtime_error("shape: got " + shown(shape) + ", which holds no numbers");
    if (due > std::numeric_limits<Index>::max() / side) {
      throw std::runtime_error("shape: got " + shown(shape) + ", more bytes than a machine can address");
    }
    due *= side;
  }
  if (came == static_cast<std::size_t>(due)) return;
  throw std::runtime_error(std::string(came < static_cast<std::size_t>(due) ? "truncated" : "too long") +
                           ": got " + std::to_string(came) + " bytes of data, expected " +
                           std::to_string(due) + " for shape " + shown(shape));
}

/// In Fortran order the first index runs fastest: head h, row i, column j is at h + heads (i + n j).
template <class T>
std::vector<Matrix<double>> heads_of(std::string_view bytes, const Header& header) {
  const Index heads = header.shape.size() == 3 ? header.shape.front() : 1;
  const Index d = header.shape.back();
  const Index n = header.shape[header.shape.size() - 2];
  const bool fortran = header.fortran_order;
  const Index head_stride = fortran ? 1 : n * d;
  const Index row_stride = fortran ? heads : d;
  const Index column_stride = fortran ? heads * n : 1;
  std::vector<Matrix<double>> result;
  for (Index h = 0; h < heads; ++h) {
    Matrix<double>& head = result.emplace_back(n, d);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < d; ++j) {
        const auto at = static_cast<std::size_t>(h * head_stride + i * row_stride + j * column_stride);
        T number;  // the header need not leave the data aligned
        std::memcpy(static_cast<void*>(&number), bytes.data() + at * sizeof(T), sizeof(T));
        head(i, j) = static_cast<double>(number);
      }
    }
  }
  return result;
}

}  // namespace detail

/// @throws std::runtime_error  naming the file, what came and what was due
inline Array read(const std::filesystem::path& path) {
  const std::string file = detail::read_bytes(path);
  try {
    std::string_view bytes = file;
    const detail::Header header = detail::parse_header(detail::take_header(bytes));
    const Dtype dtype = detail::dtype_of(header.descr);
    const std::size_t item = dtype == Dtype::float16 ? 2 : dtype == Dtype::float32 ? 4 : 8;
    detail::check_size(header.shape, item, bytes.size());
    return {dtype, header.shape,
            dtype == Dtype::float16   ? detail::heads_of<Eigen::half>(bytes, header)
            : dtype == Dtype::float32 ? detail::heads_of<float>(bytes, header)
                                      : detail::heads_of<double>(bytes, header)};
  } catch (const std::runtime_error& error) {
    detail::fail(path, error.what());
  }
}

/// Writes heads of one shape as (heads, n, d), or a single one as (n, d) unless `stacked`: '<f4' or '<f8', C
/// order, format version 1.0.
/// @throws std::runtime_error  if there is nothing to write, if shapes differ, or if the file cannot be
/// written
template <class S>
void write(const std::filesystem::path& path, const std::vector<Matrix<S>>& heads, bool stacked = true) {
  static_assert(std::is_same_v<S, float> || std::is_same_v<S, double>);
  if (heads.empty()) detail::fail(path, "no heads to write");
  const Index n = heads.front().rows();
  const Index d = heads.front().cols();
  for (const auto& head : heads) {
    if (head.rows() != n || head.cols() != d) detail::fail(path, "the heads to write differ in shape");
  }
  std::vector<Index> shape{n, d};
  if (stacked || heads.size() > 1) shape.insert(shape.begin(), static_cast<Index>(heads.size()));

  std::string header = "{'descr': '<f" + std::to_string(sizeof(S)) +
                       "', 'fortran_order': False, 'shape': " + detail::shown(shape) + ", }";
  constexpr std::size_t kPreamble = 10;  // magic, version, length
  constexpr std::size_t kAlignment = 64;
  while ((kPreamble + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';

  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\x00' << static_cast<char>(header.size() % 256)
       << static_cast<char>(header.size() / 256) << header;
  for (const auto& head : heads) {
    const auto size = static_cast<std::size_t>(head.size()) * sizeof(S);
    file.write(reinterpret_cast<const char*>(head.data()), static_cast<std::streamsize>(size));
  }
  if (!file.flush()) detail::fail(path, "cannot be written");
}

template <class S>
void write(const std::filesystem::path& path, const Matrix<S>& matrix) {
  write(path, std::vector<Matrix<S>>{matrix}, false);
}

}  // namespace npy
