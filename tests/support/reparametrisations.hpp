// Reparametrisations of every kind, and tokens to fit them to.
#pragma once

#include <phiattn/core/random.hpp>
#include <phiattn/fitting/balancing.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace reparametrisations {

using phiattn::Index;
using phiattn::Matrix;
using phiattn::Reparametrisation;
using phiattn::Vector;

inline constexpr std::uint64_t kSeed = 2021;
inline constexpr Index kD = 6;

inline Matrix<double> some(Index rows, Index cols, double size = 1) {
  return Matrix<double>::NullaryExpr(rows, cols, [=](Index i, Index j) {
    return size * std::sin(1 + 2.3 * static_cast<double>(i * cols + j));
  });
}

/// Gaussian tokens around a common mean, with some coordinates larger than others.
inline Matrix<double> tokens(Index n, std::uint64_t stream, double mean) {
  const phiattn::Philox random(kSeed, stream);
  return Matrix<double>::NullaryExpr(n, kD, [&](Index i, Index j) {
    return random.normal(static_cast<std::uint64_t>(i * kD + j)) * (0.5 + 0.3 * static_cast<double>(j)) +
           mean * (j % 2 == 0 ? 1 : -0.5);
  });
}

struct Named {
  std::string name;
  Reparametrisation value;
};

/// By hand, calibrated, and composed.
inline std::vector<Named> all_kinds(const Matrix<double>& q, const Matrix<double>& k) {
  const Vector<double> a = some(kD, 1), b = some(kD, 1, -2);
  const auto shift = Reparametrisation::shift(a, b);
  const auto diagonal = Reparametrisation::diagonal(some(kD, 1, 3));
  const auto linear = Reparametrisation::linear(some(kD, kD) + 2 * Matrix<double>::Identity(kD, kD));
  const auto centred = phiattn::centring(q, k);
  return {
      {"shift", shift},
      {"diagonal", diagonal},
      {"linear", linear},
      {"key centring", phiattn::key_centring(k)},
      {"centring", centred},
      {"diagonal balance", phiattn::diagonal_balance(q, k)},
      {"full balance", phiattn::full_balance(q, k)},
      {"centring, diagonal balance",
       centred.then(phiattn::diagonal_balance(centred.queries(q), centred.keys(k)))},
      {"shift, diagonal, shift, linear, shift", shift.then(diagonal).then(shift).then(linear).then(shift)}};
}

inline double largest_difference(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

}  // namespace reparametrisations
