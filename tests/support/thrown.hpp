// Bad calls: what they throw and what it says.
#pragma once

#include <phiattn/core/matrix.hpp>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace thrown {

using phiattn::Index;
using phiattn::Matrix;

/// What a call throws: the kind of exception and its message, both empty if none.
struct Thrown {
  std::string kind;
  std::string message;
};

inline Thrown thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return {"invalid_argument", e.what()};
  } catch (const std::length_error& e) {
    return {"length_error", e.what()};
  } catch (const std::exception& e) {
    return {"another", e.what()};
  }
  return {};
}

/// A call and what its message must contain.
struct BadCall {
  const char* name;
  std::function<void()> call;
  std::vector<std::string> says;
  std::string kind = "invalid_argument";
};

inline void check_thrown(const BadCall& bad) {
  CAPTURE(bad.name);
  const Thrown came = thrown_by(bad.call);
  CHECK(came.kind == bad.kind);
  CHECK_THAT(came.message, ContainsSubstring("phiattn: "));
  for (const std::string& part : bad.says) CHECK_THAT(came.message, ContainsSubstring(part));
}

inline Matrix<float> some(Index rows, Index cols) {
  return Matrix<float>::NullaryExpr(
      rows, cols, [cols](Index i, Index j) { return std::sin(static_cast<float>(1 + 3 * (i * cols + j))); });
}

}  // namespace thrown
