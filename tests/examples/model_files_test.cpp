// The files of the language model: what is malformed is refused by the file's name, and the key's.

#include "../../examples/model/files.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

#include "../../examples/model/vocabulary.hpp"
#include "support/catch.hpp"
#include "support/temporary_file.hpp"

using namespace examples;
using support::TemporaryFile;

namespace {

const std::filesystem::path kFolder = PHIATTN_DATA_DIR "/model";

std::string config(const std::string& key, const std::string& value) {
  std::string text = files::read_all(kFolder / "config.json");
  const std::size_t begin = text.find('"' + key + "\": ") + key.size() + 4;
  return text.replace(begin, text.find(',', begin) - begin, value);
}

}  // namespace

TEST_CASE("model files: a side that is no positive whole number is refused by file and key") {
  for (const std::string key : {"layers", "heads", "d", "d_model", "context", "vocabulary", "rope_base"}) {
    for (const std::string value : {"-4", "0", "four", "4.5", "", "99999999999999999999"}) {
      CAPTURE(key, value);
      const TemporaryFile file(config(key, value));
      CHECK_THROWS_WITH(examples::detail::read_architecture(file.path()),
                        ContainsSubstring(file.path().string()) &&
                            ContainsSubstring('"' + key + "\": got " + value + ", expected a whole number"));
    }
  }
  const TemporaryFile odd(config("heads", "5"));
  CHECK_THROWS_WITH(examples::detail::read_architecture(odd.path()), ContainsSubstring("d_model: got 256"));
  const TemporaryFile none("{}");
  CHECK_THROWS_WITH(examples::detail::read_architecture(none.path()),
                    ContainsSubstring(none.path().string()) && ContainsSubstring("\"layers\""));
  CHECK_THROWS_WITH(examples::detail::read_architecture(kFolder),
                    ContainsSubstring("expected a regular file"));
}

TEST_CASE("model files: an escape that is none is refused by file") {
  const TemporaryFile file("[\"\\u12x4\"]");
  CHECK_THROWS_WITH(
      Vocabulary(file.path(), 1),
      ContainsSubstring(file.path().string()) && ContainsSubstring("got \\u12x4, expected four hexadecimal"));
}

TEST_CASE("model files: what does not fit the architecture is refused by name") {
  CHECK_THROWS_WITH(read_matrix(kFolder / "emb.weight.npy", 1024, 255),
                    ContainsSubstring("emb.weight.npy") && ContainsSubstring("got <f2 (1024, 256)") &&
                        ContainsSubstring("expected <f2 (1024, 255)"));
  CHECK_THROWS_WITH(read_vector(kFolder / "heldout_tokens.npy", 256), ContainsSubstring("got <i4 (8, 1025)"));
  CHECK_THROWS_AS(read_language_model(kFolder / "nowhere"), std::runtime_error);
  const Architecture sides{4, 4, 64, 256, 1024, 100, 10000};
  CHECK_THROWS_WITH(read_windows(kFolder / "heldout_tokens.npy", sides, 8),
                    ContainsSubstring("is not in the vocabulary"));
}
