// An entry of compare's registry.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "evaluation.hpp"

namespace examples {

/// A similarity that compare runs.
struct Map {
  std::string name;   // in --maps and in JSON
  std::string title;  // in the table; * is calibrated on the head's own q and k
  std::string about;  // in --help
  bool by_default;    // without --maps
  bool random;        // takes --features
  std::function<Operator(const Trial&, Index features)> make;

  Result run(const Trial& trial, Index features, pa::Matrix<float>& out) const {
    Result result = trial.run([&] { return make(trial, features); }, out);
    result.map = name;
    result.title = title;
    return result;
  }
};

/// The baseline's name.
inline const std::string kUniform = "uniform";

inline constexpr bool kByDefault = true;
inline constexpr bool kWhenNamed = false;
inline constexpr bool kRandom = true;

/// `make(trial, m)` returns the similarity, with m features if they are for the user to choose: then --help says [m].
template <class Make>
Map map(std::string name, std::string title, std::string about, bool by_default, Make make,
        bool random = false) {
  if (random) about += " [m]";
  auto runnable = [make](const Trial& trial, Index m) { return operator_of(make(trial, m)); };
  return {std::move(name), std::move(title), std::move(about), by_default, random, std::move(runnable)};
}

}  // namespace examples
