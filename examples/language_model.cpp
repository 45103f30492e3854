// A trained language model with other attention in the place of softmax, without retraining: loss, memory, speed,
// and what it writes. See language_model --help.
//
// The rooms: model/arguments.hpp, files.hpp (tensor_file.hpp), decoder.hpp, trial.hpp, vocabulary.hpp, report.hpp;
// model/ has what llama needs too: tokens.hpp, head_memory.hpp, head_sample.hpp, attention_layers.hpp,
// attentions.hpp, measuring.hpp; support/ what compare does. To try a memory of your own, add a line to
// model/attentions.cpp.

#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "model/arguments.hpp"
#include "model/attentions.hpp"
#include "model/files.hpp"
#include "model/report.hpp"
#include "model/trial.hpp"
#include "model/vocabulary.hpp"
#include "support/program.hpp"

namespace {

using namespace examples;

constexpr Index kCalibrationWindows = 4;

/// Queries and keys of each head on the calibration text.
std::vector<HeadSample> calibration(const LanguageModel& model, const std::filesystem::path& text) {
  std::vector<Tokens> windows = read_windows(text, model.sides, kCalibrationWindows);
  for (Tokens& window : windows) window.pop_back();  // nothing is predicted of it
  return head_samples<Decoder>(model, model.sides.layers * model.sides.heads, model.sides.d, windows);
}

/// The windows one after the other, again and again.
Tokens long_text(const std::vector<Tokens>& windows, Index length) {
  Tokens text;
  for (std::size_t w = 0; static_cast<Index>(text.size()) < length; w = (w + 1) % windows.size()) {
    text.insert(text.end(), windows[w].begin(), windows[w].end() - 1);
  }
  return text;
}

void run(const ModelArguments& arguments) {
  const std::filesystem::path folder = PHIATTN_DATA_DIR "/model";
  const std::vector<Attention> attentions = choose("--attentions", known_attentions(), arguments.attentions);
  const LanguageModel model = read_language_model(folder);
  const Vocabulary vocabulary(folder / "vocabulary.json", static_cast<std::size_t>(model.sides.vocabulary));
  auto windows = read_windows(folder / "heldout_tokens.npy", model.sides, kHeldOutWindows);
  const Tokens text = long_text(windows, arguments.lengths.back());
  windows.resize(static_cast<std::size_t>(arguments.windows));
  const auto samples = calibration(model, folder / "calibration_tokens.npy");

  double exact = std::numeric_limits<double>::quiet_NaN();
  std::vector<ModelResult> results;
  if (!arguments.json) print_model_table_head();
  for (const Attention& attention : attentions) {
    results.push_back(try_attention(attention, model, samples, windows, text, arguments.lengths));
    if (attention.name == kExact) exact = results.back().loss;
    if (!arguments.json) print_model_rows(results.back(), exact);
  }
  if (arguments.json) {
    print_model_json(results, vocabulary);
  } else {
    print_written(results, {text.begin(), text.begin() + (arguments.lengths.front() - kWritten)}, vocabulary);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("language_model", kModelUsage, argc, argv, [](const std::vector<std::string>& words) {
    const ModelArguments arguments = parse_model_arguments(words);
    if (arguments.help) {
      std::printf("%s%s", kModelUsage.data(), model_help(known_attentions()).c_str());
    } else {
      run(arguments);
    }
  });
}
