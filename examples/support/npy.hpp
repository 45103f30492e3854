// NumPy's .npy files: reading and writing matrices of floating-point numbers, and nothing else. The file and its header are
// npy_file.hpp and npy_header.hpp; who reads files are heads/inputs.hpp and model/tensor_file.hpp.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "files.hpp"
#include "npy_file.hpp"

namespace npy {

static_assert(std::endian::native == std::endian::little, "npy: written for little-endian machines");

using phiattn::Index;
using phiattn::Matrix;

enum class Dtype { float16, bfloat16, float32, float64 };

/// The content of a file: (n, d) is one head, (heads, n, d) and (batch, heads, n, d) are several, batch by batch. Every dtype
/// widens to double exactly.
struct Array {
  Dtype dtype;
  std::vector<Index> shape;
  std::vector<Matrix<double>> heads;

  /// What stands before (n, d) in the shape.
  std::vector<Index> leading() const { return {shape.begin(), shape.end() - 2}; }
};

namespace detail {

struct Encoding {
  Dtype dtype;
  std::size_t item;  // bytes
  bool big_endian;
};

inline Encoding encoding_of(const File& file) {
  const std::string& descr = file.header().descr;
  // NumPy knows no bfloat16: who adds it (ml_dtypes) has it written as two bytes of whatever.
  if (descr == "|V2" || descr == "<V2") return {Dtype::bfloat16, 2, false};
  const bool big = descr.starts_with('>');
  if (big || descr.starts_with('<')) {
    const std::string_view kind = std::string_view(descr).substr(1);
    if (kind == "f2") return {Dtype::float16, 2, big};
    if (kind == "f4") return {Dtype::float32, 4, big};
    if (kind == "f8") return {Dtype::float64, 8, big};
  }
  file.fail("dtype: got '" + descr +
            "', expected 'f2', 'f4' or 'f8' behind '<' or '>', or '|V2', which is taken for bfloat16");
}

/// Numbers between neighbours along each side. In Fortran order the first index runs fastest.
inline std::vector<Index> strides_of(const Header& header) {
  std::vector<Index> strides(header.shape.size());
  if (header.fortran_order) {
    std::exclusive_scan(header.shape.begin(), header.shape.end(), strides.begin(), Index{1},
                        std::multiplies());
  } else {
    std::exclusive_scan(header.shape.rbegin(), header.shape.rend(), strides.rbegin(), Index{1},
                        std::multiplies());
  }
  return strides;
}

template <class T>
std::vector<Matrix<double>> heads_of(std::string_view bytes, const Header& header, bool big_endian) {
  std::vector<Index> shape = header.shape, strides = strides_of(header);
  while (shape.size() < 4) {
    shape.insert(shape.begin(), 1);
    strides.insert(strides.begin(), 0);
  }
  const auto number = [&](Index at) {
    std::array<char, sizeof(T)> raw;  // the header need not leave the data aligned
    std::memcpy(raw.data(), bytes.data() + static_cast<std::size_t>(at) * sizeof(T), sizeof(T));
    if (big_endian) std::reverse(raw.begin(), raw.end());
    T value;
    std::memcpy(static_cast<void*>(&value), raw.data(), sizeof(T));
    return static_cast<double>(value);
  };
  std::vector<Matrix<double>> result;
  for (Index b = 0; b < shape[0]; ++b) {
    for (Index h = 0; h < shape[1]; ++h) {
      const Index first = b * strides[0] + h * strides[1];
      result.push_back(Matrix<double>::NullaryExpr(shape[2], shape[3], [&](Index i, Index j) {
        return number(first + i * strides[2] + j * strides[3]);
      }));
    }
  }
  return result;
}

}  // namespace detail

/// @throws std::runtime_error  naming the file, what came and what was due
inline Array read(const std::filesystem::path& path) {
  detail::File file(path);
  const detail::Header& header = file.header();
  const detail::Encoding encoding = detail::encoding_of(file);
  if (header.shape.size() < 2 || header.shape.size() > 4) {
    file.fail("shape: got " + detail::shown(header.shape) +
              ", expected (n, d), (heads, n, d) or (batch, heads, n, d)");
  }
  const std::string bytes = file.data(encoding.item);
  const auto heads = [&]<class T>(T) { return detail::heads_of<T>(bytes, header, encoding.big_endian); };
  const Dtype dtype = encoding.dtype;
  return {dtype, header.shape,
          dtype == Dtype::float16    ? heads(Eigen::half())
          : dtype == Dtype::bfloat16 ? heads(Eigen::bfloat16())
          : dtype == Dtype::float32  ? heads(float())
                                     : heads(double())};
}

/// Writes heads of one shape as (leading..., n, d): '<f4' or '<f8', C order, format version 1.0.
/// @param leading  as many as there are heads: (heads) or (batch, heads), or empty for a single one
/// @throws std::runtime_error  if there is nothing to write, if shapes differ, or if the file cannot be
/// written
template <class S>
void write(const std::filesystem::path& path, const std::vector<Matrix<S>>& heads,
           std::vector<Index> leading) {
  static_assert(std::is_same_v<S, float> || std::is_same_v<S, double>);
  if (heads.empty()) files::fail(path, "no heads to write");
  const Index n = heads.front().rows();
  const Index d = heads.front().cols();
  for (const auto& head : heads) {
    if (head.rows() != n || head.cols() != d) files::fail(path, "the heads to write differ in shape");
  }
  if (std::accumulate(leading.begin(), leading.end(), Index{1}, std::multiplies()) !=
      static_cast<Index>(heads.size())) {
    files::fail(
        path, "got " + std::to_string(heads.size()) + " heads to write, expected " + detail::shown(leading));
  }
  std::vector<Index> shape = std::move(leading);
  shape.insert(shape.end(), {n, d});

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
  if (!file.flush()) files::fail(path, "cannot be written");
}

template <class S>
void write(const std::filesystem::path& path, const Matrix<S>& matrix) {
  write(path, std::vector<Matrix<S>>{matrix}, {});
}

}  // namespace npy
