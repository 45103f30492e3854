// The memories that are fuzzed, each with its definition.
#pragma once

#include <functional>
#include <stdexcept>

#include "bytes.hpp"
#include "support/far_cases.hpp"

namespace fuzz {

inline constexpr Index kD = laws::kFarDimension;

/// What a map throws, once as many calls were left.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};
inline Index& calls_left() {
  static Index calls = -1;  // never
  return calls;
}

struct Traits {
  bool by_position = false;  // its similarity knows where tokens stand
  bool throws = false;       // its map can be interrupted
  bool keeps = false;        // each token by itself
};

struct Subject {
  laws::FarCase<float> far;  // its name, frame and model
  Index window;              // tokens that it sees exactly
  double scale;
  Traits traits;
  std::function<phiattn::AnyMemory<float>(Index dv, Index chunk)> make;

  /// Whether some of so many tokens can be forgotten.
  bool forgets(Index size) const { return traits.keeps || size <= window; }

  /// Of positive coordinates, where a query might have none in common with a key.
  Matrix<float> queries(Bytes& bytes, Index n) const;
  /// Keys each of which is much nearer to one centre than to all others.
  Matrix<float> keys(Bytes& bytes, Index n) const;
};

/// Any of them, not interrupted so far.
const Subject& draw_subject(Bytes& bytes);

}  // namespace fuzz
