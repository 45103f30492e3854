// Compares approximations of softmax attention with the exact result on real attention heads: time, memory
// and error, next to the error of attending to every key alike. See compare --help.
//
// The rooms: heads/arguments.hpp, inputs.hpp, evaluation.hpp, map.hpp, known_memories.hpp, known_maps.hpp, report.hpp;
// support/ has what language_model needs too. To compare a map of your own, add a line to heads/known_maps.hpp.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "heads/arguments.hpp"
#include "heads/inputs.hpp"
#include "heads/known_maps.hpp"
#include "heads/report.hpp"
#include "support/npy.hpp"
#include "support/program.hpp"

namespace {

using namespace examples;

/// A map with its number of features, as often as it is to be run.
struct Choice {
  Map map;
  Index features;  // random maps only
};

std::vector<Choice> choices(const Arguments& arguments, const std::vector<Map>& known) {
  std::vector<Choice> result;
  for (const Map& map : choose("--maps", known, arguments.maps)) {
    if (!map.random) result.push_back({map, 0});
    for (const std::int64_t m : arguments.features) {
      if (map.random) result.push_back({map, static_cast<Index>(m)});
    }
  }
  return result;
}

/// Which ways to run a head: not causal, causal or both, in this order.
std::vector<bool> causalities(const Arguments& arguments, const Head& head) {
  if (arguments.as_shipped && head.causal) return {*head.causal};
  if (arguments.causal) return {*arguments.causal};
  return {false, true};
}

/// One file takes one output; heads that came stacked in one file go stacked into one.
void check_one_output(const Arguments& arguments, const Heads& inputs, const std::vector<Choice>& chosen) {
  if (chosen.size() != 1) throw UsageError("--out needs one map: --maps A, and for performer --features M");
  if (inputs.heads.size() != 1 && inputs.leading.empty()) throw UsageError("--out needs one head: --heads A");
  if (causalities(arguments, inputs.heads.front()).size() != 1) {
    throw UsageError("--out needs one causality: --causal yes or --causal no");
  }
}

void compare(const Arguments& arguments, const Heads& inputs) {
  const std::vector<Map> known = known_maps(arguments.seed);
  const std::vector<Choice> chosen = choices(arguments, known);
  const Map& uniform = known.back();

  const bool keep_outputs = !arguments.out.empty();
  if (keep_outputs) check_one_output(arguments, inputs, chosen);
  std::vector<pa::Matrix<float>> outputs;

  if (arguments.json) {
    std::puts("[");
  } else {
    print_table_head();
  }
  for (const Head& head : inputs.heads) {
    const std::vector<bool> ways = causalities(arguments, head);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const Trial trial(head, ways[way]);
      pa::Matrix<float> out;
      Experiment experiment{head, ways[way], {}, uniform.run(trial, 0, out)};
      for (const Choice& choice : chosen) {
        experiment.results.push_back(choice.map.run(trial, choice.features, out));
      }
      const bool last = &head == &inputs.heads.back() && way + 1 == ways.size();
      arguments.json ? print_json(experiment, last) : print_table(experiment);
      if (keep_outputs) outputs.push_back(out);
    }
  }
  if (arguments.json) {
    std::puts("]");
  } else {
    print_table_foot();
  }
  if (keep_outputs) npy::write(arguments.out, outputs, inputs.leading);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("compare", kUsage, argc, argv, [](const std::vector<std::string>& words) {
    const Arguments arguments = parse_arguments(words);
    if (arguments.help) {
      std::printf("%s%s", kUsage.data(), help(known_maps(arguments.seed)).c_str());
      return;
    }
    compare(arguments, arguments.q.empty() ? read_shipped_heads(PHIATTN_DATA_DIR "/heads", arguments.heads)
                                           : read_heads(arguments.q, arguments.k, arguments.v));
  });
}
