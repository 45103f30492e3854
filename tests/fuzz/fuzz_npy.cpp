// .npy files of any content: a matrix, or an exception that names the file.

#include "../../examples/support/npy.hpp"

#include "file_bytes.hpp"

namespace {

/// Behind a magic, a version and the length of a header, that of its bytes: what else is in the way of the parser.
std::string npy_file(FuzzedDataProvider& bytes) {
  if (bytes.ConsumeBool()) return bytes.ConsumeRemainingBytesAsString();
  const std::string data(bytes.ConsumeIntegralInRange<std::size_t>(0, 200), '\x3C');
  std::string header = bytes.ConsumeRemainingBytesAsString();
  if (header.size() % 2 == 0) header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + header;
  return support::file_of(1, header, data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  const fuzz::File file(npy_file(bytes));
  file.read([](const std::filesystem::path& path) {
    const npy::Array array = npy::read(path);
    const auto numbers = array.shape[array.shape.size() - 2] * array.shape.back();
    for (const auto& head : array.heads) {
      if (head.size() != numbers) std::abort();
    }
  });
  return 0;
}
