// Rotary positions (Su et al. 2021).
#pragma once

#include <phiattn/core/matrix.hpp>

#include <cmath>

namespace examples {

namespace pa = phiattn;
using pa::Index;

/// Turns the pair (x_i, x_{i + d/2}) of a query or key at position p by the angle p / base^(2i/d): q . k then depends
/// on the distance of their tokens alone.
class Rotary {
 public:
  Rotary(Index d, double base) : frequencies_(d / 2) {
    for (Index i = 0; i < d / 2; ++i) {
      frequencies_(i) = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(d));
    }
  }

  /// For the n tokens from position `first` on.
  void move_to(Index first, Index n) {
    cos_.resize(n, frequencies_.size());
    sin_.resize(n, frequencies_.size());
    for (Index t = 0; t < n; ++t) {
      const auto angles = static_cast<double>(first + t) * frequencies_.array();
      cos_.row(t) = angles.cos().cast<float>();
      sin_.row(t) = angles.sin().cast<float>();
    }
  }

  /// Rows x (n, d) of the tokens moved to.
  void turn(pa::MatrixRef<float> x) const {
    const Index half = frequencies_.size();
    for (Index t = 0; t < x.rows(); ++t) {
      auto low = x.row(t).head(half).array();
      auto high = x.row(t).tail(half).array();
      const auto c = cos_.row(t).array();
      const auto s = sin_.row(t).array();
      for (Index i = 0; i < half; ++i) {
        const float before = low(i);
        low(i) = before * c(i) - high(i) * s(i);
        high(i) = high(i) * c(i) + before * s(i);
      }
    }
  }

 private:
  pa::RowVector<double> frequencies_;
  pa::Matrix<float> cos_, sin_;
};

}  // namespace examples
