// What language_model and llama put in the place of softmax attention: a new one is a new line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "head_sample.hpp"

namespace examples {

/// A kind of memory, made empty for a head of which a sample of calibration text is known.
struct Attention {
  std::string name;   // in --attentions and in JSON
  std::string title;  // in the table; * is calibrated
  std::string about;  // in --help
  bool by_default;    // without --attentions
  std::function<HeadMemory(const HeadSample&)> make;
  Index least = 0;  // tokens of a sample that it is calibrated on; 0: it asks the sample for its sides alone
};

inline constexpr std::uint64_t kSeed = 0;

inline const std::string kExact = "softmax";

/// Exact softmax first, uniform attention last.
std::vector<Attention> known_attentions();

}  // namespace examples
