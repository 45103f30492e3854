// Arrays of a known dtype and shape from .npy files: a model's weights and tokens.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/npy.hpp"

namespace examples {

namespace pa = phiattn;
using pa::Index;

/// The numbers of a C-order array, in order.
/// @param descr  NumPy's name of T, as '<f2'
/// @throws std::runtime_error  naming the file, if it is malformed or holds another dtype or shape
template <class T>
std::vector<T> read_numbers(const std::filesystem::path& path, std::string_view descr,
                            const std::vector<Index>& shape) {
  const std::string file = npy::detail::read_bytes(path);
  try {
    std::string_view bytes = file;
    const npy::detail::Header header = npy::detail::parse_header(npy::detail::take_header(bytes));
    if (header.descr != descr || header.shape != shape || header.fortran_order) {
      std::string due(descr);
      due += ' ' + npy::detail::shown(shape) + " in C order";
      throw std::runtime_error("got " + header.descr + ' ' + npy::detail::shown(header.shape) +
                               ", expected " + due);
    }
    std::size_t size = 1;
    for (const Index side : shape) size *= static_cast<std::size_t>(side);
    if (bytes.size() != size * sizeof(T)) {
      throw std::runtime_error("got " + std::to_string(bytes.size()) + " bytes of data, expected " +
                               std::to_string(size * sizeof(T)));
    }
    std::vector<T> numbers(size);
    std::memcpy(static_cast<void*>(numbers.data()), bytes.data(), bytes.size());
    return numbers;
  } catch (const std::runtime_error& error) {
    npy::detail::fail(path, error.what());
  }
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
