// llama is the model that its file says, whatever its attention and however its prompt comes in, and takes texts.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../examples/model/tokenizer.hpp"
#include "support/catch.hpp"
#include "support/llama_bytes.hpp"
#include "support/program.hpp"
#include "support/temporary_file.hpp"

using namespace support;

namespace {

nlohmann::json result(const std::string& arguments) {
  const auto [output, exit_code] = run(PHIATTN_LLAMA, "--json --steps 12 " + arguments);
  CAPTURE(output);
  REQUIRE(exit_code == 0);
  return nlohmann::json::parse(output);
}

nlohmann::json result_of(const TemporaryFile& model, const std::string& arguments) {
  return result("--model " + model.path().string() + ' ' + arguments);
}

/// 0, 1 and 2; bytes; and a few letters, of which " ab" is best joined as " " and "ab".
std::string tokenizer_bytes(int longest = 8) {
  std::string bytes;
  append_number(bytes, longest);
  const auto add = [&](const std::string& text, float score) {
    append_number(bytes, score);
    append_number(bytes, static_cast<int>(text.size()));
    bytes += text;
  };
  for (const std::string special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(special, 0);
  for (int i = 0; i < 256; ++i)
    add("<0x" + std::string(1, "0123456789ABCDEF"[i / 16]) + "0123456789ABCDEF"[i % 16] + '>', 0);
  for (const auto& [text, score] : std::vector<std::pair<std::string, float>>{
           {" ", -9}, {"a", -9}, {"b", -9}, {" a", -3}, {"ab", -1}, {" ab", -2}, {"\xC3\xA9", -9}}) {
    add(text, score);
  }
  return bytes;
}
constexpr std::size_t kTexts = 266;

}  // namespace

TEST_CASE("llama: a file of either version is the same model, and its logits are those of plain loops") {
  for (const int kv_heads : {1, 2, 4}) {
    for (const bool shared : {true, false}) {
      CAPTURE(kv_heads, shared);
      const LlamaWeights weights = llama_weights(4, kv_heads, shared);
      const TemporaryFile first(version_0(weights)), second(version_1(weights));
      const auto a = result_of(first, "--prompt '1 7 39 3 3'"),
                 b = result_of(second, "--prompt '1 7 39 3 3'");
      CHECK(a["prompt"] == std::vector<int>{1, 7, 39, 3, 3});
      CHECK(a["written"].size() == 12);
      CHECK(a["written"] == b["written"]);
      CHECK(a["largest_logit"] == b["largest_logit"]);
      CHECK(a["difference"].get<double>() <= 1e-4);
      CHECK(b["difference"].get<double>() <= 1e-4);
    }
  }
}

TEST_CASE("llama: blocks of any size write the same") {
  const TemporaryFile model(version_1(llama_weights(6, 2, false)));
  const auto whole = result_of(model, "--prompt-length 100 --block 100");
  for (const std::string block : {"1", "3", "64"}) {
    CAPTURE(block);
    const auto found = result_of(model, "--prompt-length 100 --block " + block);
    CHECK(found["prompt"] == whole["prompt"]);
    CHECK(found["written"] == whole["written"]);
    CHECK(found["difference"].get<double>() <= 1e-4);
  }
}

TEST_CASE("llama: other attention is near, and has what is calibrated from the prompt") {
  const TemporaryFile model(version_1(llama_weights(4, 2, true)));
  for (const std::string name : {"closure", "clusters", "mixture16"}) {
    CAPTURE(name);
    const auto within = result_of(model, "--prompt-length 64 --steps 1 --attention " + name);
    CHECK(within["attention"] == name);
    // The window is exact, up to its 64 tokens and a block.
    const auto beyond = result_of(model, "--prompt-length 300 --attention " + name);
    CHECK(beyond["difference"].get<double>() > 1e-4);
    CHECK(beyond["difference"].get<double>() < beyond["largest_logit"].get<double>());
    CHECK(beyond["nonpositive_rows"] == 0);
  }
  const auto [output, exit_code] =
      run(PHIATTN_LLAMA, "--attention clusters --prompt-length 63 --model " + model.path().string());
  CHECK(exit_code == 2);
  CHECK_THAT(output, ContainsSubstring("--attention clusters: calibrated on the prompt, expected 64 tokens"));
}

TEST_CASE("llama: tokens are drawn by temperature and seed") {
  const TemporaryFile model(version_1(llama_weights(4, 4, true)));
  const auto warm = result_of(model, "--temperature 1.5 --seed 3 --no-plain");
  CHECK(warm["difference"].is_null());
  CHECK(warm["written"] == result_of(model, "--temperature 1.5 --seed 3")["written"]);
  CHECK(warm["written"] != result_of(model, "--temperature 1.5 --seed 4")["written"]);
  CHECK(warm["written"] != result_of(model, "")["written"]);
}

TEST_CASE("llama: random weights of a shape, and bad usage") {
  const auto found = result("--random 48,40,2,6,3,30 --prompt-length 20");
  CHECK(found["difference"].get<double>() <= 1e-4);
  CHECK((found["memory_bytes"].is_null() || found["memory_bytes"] > 0));
  for (const std::string bad :
       {"", "--random 1,2", "--random 48,40,2,5,5,30", "--random 48,40,2,6,4,30",
        "--random 8,8,1,2,1,16 --model x", "--random 8,8,1,2,1,16 --prompt 16",
        "--random 8,8,1,2,1,16 --prompt ''", "--random 8,8,1,2,1,16 --block 0",
        "--random 8,8,1,2,1,16 --attention all", "--random 8,8,1,2,1,16 --temperature hot",
        "--random 8,8,1,2,1,16 --prompt 1 --prompt-length 2", "--nonsense"}) {
    CAPTURE(bad);
    CHECK(run(PHIATTN_LLAMA, bad).exit_code == 2);
  }
}

TEST_CASE("llama: texts are cut into tokens of the best scores, and bytes of what has none") {
  const TemporaryFile file(tokenizer_bytes());
  const examples::Tokenizer tokenizer(file.path(), kTexts);
  constexpr int kSpace = 259, kA = 260, kB = 261, kSpaceAb = 264, kAcute = 265;
  CHECK(tokenizer.encode("") == examples::Tokens{1});
  CHECK(tokenizer.encode("ab") == examples::Tokens{1, kSpaceAb});
  CHECK(tokenizer.encode("bba") == examples::Tokens{1, kSpace, kB, kB, kA});
  CHECK(tokenizer.encode("\xC3\xA9z") == examples::Tokens{1, kSpace, kAcute, 3 + 'z'});
  const auto text = tokenizer.encode("abz\xC3\xA8\n");
  CHECK(tokenizer.decode(text) == " abz\xC3\xA8\n");

  const TemporaryFile model(version_1(llama_weights(4, 2, true, kTexts)));
  const auto found = result_of(model, "--prompt ab --tokenizer " + file.path().string());
  CHECK(found["prompt"] == std::vector<int>{1, kSpaceAb});
  CHECK(found["difference"].get<double>() <= 1e-4);
}

TEST_CASE("llama: a malformed tokenizer is refused by its name") {
  const std::string good = tokenizer_bytes();
  for (const std::string& bad : {std::string(), good.substr(0, 3), good.substr(0, good.size() - 1), good + 'x',
                                tokenizer_bytes(-1), tokenizer_bytes(5)}) {
    CAPTURE(bad.size());
    const TemporaryFile file(bad);
    CHECK_THROWS_WITH(examples::Tokenizer(file.path(), kTexts), ContainsSubstring(file.path().string()));
  }
}
