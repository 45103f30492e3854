// .npy files, byte by byte.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

namespace support {

inline std::string file_of(int version, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const std::size_t digits = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < digits; ++i) bytes += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return bytes + header + data;
}

inline std::string header_of(const std::string& descr, const std::string& order, const std::string& shape) {
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

inline const std::string kData = counted<float>(6);
inline const std::string kHeader = header_of("<f4", "False", "(2, 3)");

}  // namespace support
