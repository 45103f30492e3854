// Small tokens of every scalar, and a map and a kernel to attend with.
#pragma once

#include <phiattn/attention/options.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <cmath>

namespace tokens {

using phiattn::Index;
using phiattn::Matrix;

inline constexpr Index kNq = 9;
inline constexpr Index kNk = 11;
inline constexpr Index kD = 4;
inline constexpr Index kDv = 3;

template <class S>
Matrix<S> some(Index rows, Index cols, double seed = 1) {
  return Matrix<S>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return static_cast<S>(std::sin(seed + 3.7 * static_cast<double>(i * cols + j)));
  });
}

/// A chunk smaller than the inputs, so that each is loaded in pieces.
inline constexpr phiattn::AttentionOptions kOptions{.chunk = 4};

struct Sample {
  Matrix<float> q = some<float>(kNq, kD, 1);
  Matrix<float> k = some<float>(kNk, kD, 2);
  Matrix<float> v = some<float>(kNk, kDv, 3);
  phiattn::PositiveRandomFeatures<float> map{some<float>(6, kD, 4)};
  phiattn::ExponentialKernel<float> kernel;
};

using ColumnMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

}  // namespace tokens
