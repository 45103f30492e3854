// Rotary positions (Su et al. 2021).
#pragma once

#include <phiattn/core/matrix.hpp>

#include <cmath>

namespace examples {

namespace pa = phiattn;
using pa::Index;

/// Which numbers of a head turn together: (x_i, x_{i + d/2}) or (x_{2i}, x_{2i + 1}).
enum class Pairs { halves, neighbours };

/// Turns the i-th pair of a query or key at position p by the angle p / base^(2i/d): q . k then depends on the distance
/// of their tokens alone.
class Rotary {
 public:
  Rotary(Index d, double base, Pairs pairs = Pairs::halves) : pairs_(pairs), frequencies_(d / 2) {
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
    const Index step = pairs_ == Pairs::halves ? 1 : 2, apart = pairs_ == Pairs::halves ? half : 1;
    for (Index t = 0; t < x.rows(); ++t) {
      auto row = x.row(t);
      for (Index i = 0; i < half; ++i) {
        float& low = row(step * i);
        float& high = row(step * i + apart);
        const float before = low;
        low = before * cos_(t, i) - high * sin_(t, i);
        high = high * cos_(t, i) + before * sin_(t, i);
      }
    }
  }

 private:
  Pairs pairs_;
  pa::RowVector<double> frequencies_;
  pa::Matrix<float> cos_, sin_;
};

}  // namespace examples
