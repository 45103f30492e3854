// The parts of the language model: however tokens come in, and whatever memory holds them, it is the same model.

#include "../../examples/model/decoder.hpp"

#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "../../examples/model/vocabulary.hpp"
#include "support/catch.hpp"

using namespace examples;

namespace {

const std::filesystem::path kFolder = PHIATTN_DATA_DIR "/model";

const LanguageModel& model() {
  static const LanguageModel read = read_language_model(kFolder);
  return read;
}

Tokens some_tokens(std::size_t n) {
  Tokens tokens = read_windows(kFolder / "heldout_tokens.npy", model().sides, 8).front();
  tokens.resize(n);
  return tokens;
}

template <class M>
Decoder decoder_of(const M& memory) {
  return Decoder(model(), std::vector<HeadMemory>(16, HeadMemory(memory)));
}

/// The states of all tokens, taken in by blocks of the sizes given.
template <class M>
pa::Matrix<float> states(const M& memory, const Tokens& tokens, const std::vector<std::size_t>& blocks) {
  Decoder decoder = decoder_of(memory);
  pa::Matrix<float> all(static_cast<Index>(tokens.size()), model().sides.width);
  for (const std::size_t size : blocks) {
    const Index first = decoder.position();
    const auto block = std::span(tokens).subspan(static_cast<std::size_t>(first), size);
    all.middleRows(first, static_cast<Index>(size)) = decoder.advance(block);
  }
  CHECK(decoder.position() == all.rows());
  return all;
}

/// States are of size 1 (a layer norm), and come through four layers of sums over up to 1024 terms of that size in
/// float: 1e-4 is some 100 times what these round to, and less than a tenth of what another token changes.
constexpr float kRounding = 1e-4f;

float largest_difference(const pa::Matrix<float>& a, const pa::Matrix<float>& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

}  // namespace

TEST_CASE("decoder: blocks of any size and single tokens give the same states") {
  const Tokens tokens = some_tokens(150);
  const auto check = [&](const auto& memory) {
    const pa::Matrix<float> whole = states(memory, tokens, {150});
    CHECK(largest_difference(states(memory, tokens, {1, 99, 50}), whole) < kRounding);
    CHECK(largest_difference(states(memory, tokens, std::vector<std::size_t>(150, 1)), whole) < kRounding);
    // The future does not matter, the past does.
    Tokens other = tokens;
    other[100] = tokens[100] == 7 ? 8 : 7;
    const pa::Matrix<float> changed = states(memory, other, {150});
    CHECK(largest_difference(changed.topRows(100), whole.topRows(100)) < kRounding);
    for (Index t = 100; t < 150; ++t) {
      CAPTURE(t);
      CHECK(largest_difference(changed.row(t), whole.row(t)) > 10 * kRounding);
    }
  };
  check(pa::KeyValueCache(pa::ExponentialKernel<float>(), 64));
  check(pa::Windowed(32, pa::GaussianClosure<float>(64, 64)));
}

TEST_CASE("decoder: copies of a memory are independent") {
  const Tokens tokens = some_tokens(20);
  Decoder decoder = decoder_of(pa::KeyValueCache(pa::ExponentialKernel<float>(), 64));
  decoder.advance(std::span(tokens).first(19));
  Decoder copy = decoder;
  copy.advance(std::span(tokens).first(10));
  const pa::Matrix<float> last = decoder.advance(std::span(tokens).last(1));
  const pa::Matrix<float> due = states(pa::KeyValueCache(pa::ExponentialKernel<float>(), 64), tokens, {20});
  CHECK(largest_difference(last, due.bottomRows(1)) < kRounding);
}

TEST_CASE("vocabulary: texts of tokens, in UTF-8") {
  const Vocabulary vocabulary(kFolder / "vocabulary.json", 1024);
  const std::string text = vocabulary.text(some_tokens(60));
  CHECK_THAT(text, ContainsSubstring(" Let us be glad and rejoice, and give honour to him:"));
  const auto parse = [](const std::string& json) { return examples::detail::StringsParser(json).parse(); };
  CHECK(parse(R"(["a", "\n\"\\", "\u00e9\u2018"])") ==
        std::vector<std::string>{"a", "\n\"\\", "\xC3\xA9\xE2\x80\x98"});
  for (const std::string malformed :
       {"", "[", "[\"a", "[\"a\"", "[\"\\x\"]", "[1]", "[\"a\",]", "[\"\\u12\"]"}) {
    CAPTURE(malformed);
    CHECK_THROWS(parse(malformed));
  }
  CHECK_THROWS_WITH(Vocabulary(kFolder / "vocabulary.json", 3), ContainsSubstring("vocabulary.json"));
}
