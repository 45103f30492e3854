// Arrays of a known dtype and shape from .npy files: a model's weights and tokens.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "../support/npy_file.hpp"

namespace examples {

namespace pa = phiattn;
using pa::Index;

/// The numbers of a C-order array, in order.
/// @param descr  NumPy's name of T, as '<f2'
/// @throws std::runtime_error  naming the file, if it is malformed or holds another dtype or shape
template <class T>
std::vector<T> read_numbers(const std::filesystem::path& path, std::string_view descr,
                            const std::vector<Index>& shape) {
  npy::detail::File file(path);
  const npy::detail::Header& header = file.header();
  if (header.descr != descr || header.shape != shape || header.fortran_order) {
    file.fail("got " + header.descr + ' ' + npy::detail::shown(header.shape) +
              (header.fortran_order ? " in Fortran order" : "") + ", expected " + std::string(descr) + ' ' +
              npy::detail::shown(shape) + " in C order");
  }
  const std::string bytes = file.data(sizeof(T));
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(numbers.data()), bytes.data(), bytes.size());
  return numbers;
}

/// A float16 array (rows, cols), widened.
inline pa::Matrix<float> read_matrix(const std::filesystem::path& path, Index rows, Index cols) {
  const auto numbers = read_numbers<Eigen::half>(path, "<f2", {rows, cols});
  return Eigen::Map<const pa::Matrix<Eigen::half>>(numbers.data(), rows, cols).cast<float>();
}

/// A float16 array (size), widened.
inline pa::RowVector<float> read_vector(const std::filesystem::path& path, Index size) {
  const auto numbers = read_numbers<Eigen::half>(path, "<f2", {size});
  return Eigen::Map<const pa::RowVector<Eigen::half>>(numbers.data(), size).cast<float>();
}

}  // namespace examples
