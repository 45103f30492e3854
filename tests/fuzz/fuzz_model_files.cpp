// Files of a language model, of any content: what they say, or an exception that names the file.

#include "../../examples/model/files.hpp"
#include "../../examples/model/vocabulary.hpp"

#include "file_bytes.hpp"

namespace {

using namespace examples;

constexpr Architecture kSides{1, 1, 2, 2, 3, 5, 10000};

/// Members that may be numbers, and what is behind them.
std::string config(FuzzedDataProvider& bytes) {
  std::string text = "{";
  for (const char* key : {"layers", "heads", "d", "d_model", "context", "vocabulary", "rope_base"}) {
    text += '"' + std::string(key) + "\": " + bytes.ConsumeRandomLengthString(12) + ",\n";
  }
  return text + bytes.ConsumeRemainingBytesAsString();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  const auto rest = [&] { return bytes.ConsumeRemainingBytesAsString(); };
  switch (bytes.ConsumeIntegralInRange(0, 4)) {
    case 0:
      fuzz::File(config(bytes)).read(examples::detail::read_architecture);
      break;
    case 1:
      fuzz::File("[\"" + rest()).read([](const std::filesystem::path& path) { Vocabulary(path, 2); });
      break;
    case 2: {
      const bool wrong = bytes.ConsumeBool();
      const auto header = support::header_of(wrong ? "<f2" : "<i4", "False", "(2, 4)");
      fuzz::File(support::file_of(1, header, rest())).read([](const std::filesystem::path& path) {
        for (const Tokens& window : read_windows(path, kSides, 2)) {
          if (window.size() != 4) std::abort();
        }
      });
      break;
    }
    case 3:
      fuzz::File(support::file_of(1, support::header_of("<f2", "False", "(2, 3)"), rest()))
          .read([](const std::filesystem::path& path) { read_matrix(path, 2, 3); });
      break;
    default:
      fuzz::File(rest()).read([](const std::filesystem::path& path) { read_vector(path, 3); });
  }
  return 0;
}
