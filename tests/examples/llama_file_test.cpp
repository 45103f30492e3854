// The files of llama: each weight is where it belongs, and what is malformed is refused by the file's name.

#include "../../examples/model/llama_file.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/llama_bytes.hpp"
#include "support/program.hpp"
#include "support/temporary_file.hpp"

using namespace examples;
using namespace support;

namespace {

/// The layer-th part of weights of all layers.
template <class Rows>
bool is_layer(const Rows& rows, const std::vector<float>& all, std::size_t layer) {
  const Index size = rows.size();
  const pa::Matrix<float> copy = rows;
  return static_cast<Index>(all.size()) == 2 * size &&
         std::memcmp(copy.data(), all.data() + static_cast<Index>(layer) * size,
                     sizeof(float) * static_cast<std::size_t>(size)) == 0;
}

std::string with_integer(std::string bytes, std::size_t at, std::int32_t x) {
  std::memcpy(bytes.data() + 4 * at, &x, sizeof x);
  return bytes;
}

void check_refused(const std::string& bytes, const std::string& why) {
  CAPTURE(why);
  const TemporaryFile file(bytes);
  CHECK_THROWS_WITH(read_llama(file.path()),
                    ContainsSubstring(file.path().string() + ": ") && ContainsSubstring(why));
  const auto [output, exit_code] = run(PHIATTN_LLAMA, "--model " + file.path().string());
  CHECK(exit_code == 2);
  CHECK_THAT(output, ContainsSubstring(file.path().string() + ": "));
}

}  // namespace

TEST_CASE("llama file: every weight is where it belongs") {
  for (const bool shared : {true, false}) {
    const LlamaWeights w = llama_weights(4, 2, shared);
    for (const std::string& bytes : {version_0(w), version_1(w)}) {
      const TemporaryFile file(bytes);
      const LlamaModel model = read_llama(file.path());
      CHECK(model.sides.kv_dim() == 12);
      CHECK(model.sides.context == w.context);
      CHECK(model.shares_classifier() == shared);
      CHECK(std::equal(w.embedding.begin(), w.embedding.end(), model.embedding.data()));
      CHECK(std::equal(w.last_norm.begin(), w.last_norm.end(), model.last_norm.data()));
      CHECK(std::equal(w.classifier.begin(), w.classifier.end(), model.own_classifier.data()));
      REQUIRE(model.layers.size() == 2);
      for (std::size_t l = 0; l < 2; ++l) {
        const LlamaLayer& layer = model.layers[l];
        CHECK(is_layer(layer.attention_norm, w.attention_norm, l));
        CHECK(is_layer(layer.transform_norm, w.ffn_norm, l));
        CHECK(is_layer(layer.qkv.topRows(24), w.wq, l));
        CHECK(is_layer(layer.qkv.middleRows(24, 12), w.wk, l));
        CHECK(is_layer(layer.qkv.bottomRows(12), w.wv, l));
        CHECK(is_layer(layer.projection, w.wo, l));
        CHECK(is_layer(layer.gate_up.topRows(20), w.w1, l));
        CHECK(is_layer(layer.gate_up.bottomRows(20), w.w3, l));
        CHECK(is_layer(layer.down, w.w2, l));
      }
    }
  }
}

TEST_CASE("llama file: a file that ends early or goes on is refused") {
  const LlamaWeights weights = llama_weights(4, 2, false);
  for (const std::string& good : {version_0(weights), version_1(weights)}) {
    check_refused(good.substr(0, good.size() - 1), "bytes behind the header, expected");
    check_refused(good + '\0', "bytes behind the header, expected");
    check_refused(good.substr(0, 27), "ends within the header");
    check_refused("", "ends within the header");
  }
  check_refused(version_1(weights).substr(0, 255), "ends within the header");
}

TEST_CASE("llama file: a header that is none is refused") {
  const LlamaWeights weights = llama_weights(4, 2, false);
  const std::string v0 = version_0(weights), v1 = version_1(weights);
  check_refused(with_integer(v1, 0, 0x616b3433), "dim: got 1634415667");
  check_refused(with_integer(v1, 1, 2), "version: got 2, expected 0 or 1");
  const std::vector<std::string> names{"dim",        "hidden_dim", "n_layers", "n_heads",
                                       "n_kv_heads", "vocab_size", "seq_len"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::int32_t bad : {0, -1, INT32_MAX, INT32_MIN}) {
      check_refused(with_integer(v1, 2 + i, bad), names[i] + ": got " + std::to_string(bad));
      // In version 0 a vocabulary below 0 has a meaning.
      if (names[i] != "vocab_size" || bad == 0) check_refused(with_integer(v0, i, bad), names[i] + ": got ");
    }
  }
  check_refused(with_integer(v0, 5, INT32_MIN), "vocab_size: got 2147483648");
  check_refused(with_integer(v0, 3, 5), "n_heads: got 5");
  check_refused(with_integer(v0, 3, 24), "n_heads: got 24, expected heads of an even size");
  check_refused(with_integer(v0, 4, 3), "n_kv_heads: got 3, expected a divisor of n_heads, 4");
}

TEST_CASE("llama file: what is no file is refused") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH(read_llama(folder), ContainsSubstring(folder.string() + ": cannot be read"));
  CHECK_THROWS_WITH(read_llama(folder / "phiattn_no_such_file"), ContainsSubstring("phiattn_no_such_file: "));
}
