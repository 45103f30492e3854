// Seeded inputs, what the library makes of them, and how far that is from what it ought to be.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/oracle.hpp"
#include "support/similarities.hpp"

namespace laws {

using oracle::Expected;
using oracle::Real;
using phiattn::Causality;
using phiattn::RowVector;
using phiattn::Vector;

inline constexpr std::uint64_t kSeed = 2021;

/// Independent normals of standard deviation `size`.
template <class S>
Matrix<S> gaussian(Index rows, Index cols, std::uint64_t seed, double size = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, size);
  return Matrix<S>::NullaryExpr(rows, cols, [&] { return static_cast<S>(normal(random)); });
}

/// One call of attention.
template <class S>
struct Problem {
  Matrix<S> q, k, v;
  AttentionOptions options = {};
  Vector<S> log_weights = {};  // empty: none
};

struct Shape {
  Index n_q, n_k, d, dv;
};

/// Scores q . k / sqrt(d) are of the order 1/2: odd Taylor polynomials rarely cancel.
template <class S>
Problem<S> gaussian_problem(const Shape& shape, const AttentionOptions& options = {},
                            std::uint64_t seed = kSeed, double size = 0.7) {
  return {gaussian<S>(shape.n_q, shape.d, seed, size), gaussian<S>(shape.n_k, shape.d, seed + 1, size),
          gaussian<S>(shape.n_k, shape.dv, seed + 2), options};
}

template <class S>
Expected expected(const Case<S>& similarity, const Problem<S>& problem, Index every = 1) {
  const std::vector<Real> log_weights(problem.log_weights.begin(), problem.log_weights.end());
  return oracle::attend(similarity.expected(problem.q.cols()), problem.q.template cast<Real>(),
                        problem.k.template cast<Real>(), problem.v.template cast<Real>(), problem.options,
                        log_weights, every);
}

template <class S>
Matrix<S> attend(const Case<S>& similarity, const Problem<S>& problem) {
  Matrix<S> out(problem.q.rows(), problem.v.cols());
  similarity.attention(problem.q, problem.k, problem.v, out, problem.options);
  return out;
}

/// The larger of the two, NaN if either is.
inline double worse(double a, double b) { return a > b || std::isnan(a) ? a : b; }

template <class S>
double epsilon(Real condition) {
  return static_cast<double>(std::numeric_limits<S>::epsilon() * condition);
}

/// Largest |out - expected| in units of its tolerance, eps condition_i (max |v| + |expected|): what rounding does to the
/// numerator and to the normaliser. Rows of `out` are those of `expected` from `first` on.
template <class S>
double error(const Matrix<S>& out, const Expected& expected, Index first = 0) {
  if (out.rows() != expected.out.rows() - first || out.cols() != expected.out.cols()) return INFINITY;
  double worst = 0;
  for (const Index i : expected.rows) {
    if (i < first) continue;
    for (Index c = 0; c < out.cols(); ++c) {
      const Real due = expected.out(i, c);
      const Real difference = std::abs(static_cast<Real>(out(i - first, c)) - due);
      if (difference == 0) continue;
      const Real magnitude = expected.largest_value + std::abs(due);
      worst = worse(static_cast<double>(difference / magnitude) / epsilon<S>(expected.condition(i)), worst);
    }
  }
  return worst;
}

/// The same for a matrix of weights.
template <class S>
double weight_error(const Matrix<S>& weights, Expected expected) {
  expected.out = expected.weights;
  expected.largest_value = 1;
  return error(weights, expected);
}

/// The same for two results that ought to be one, each within the tolerance of `expected`.
template <class S>
double distance(const Matrix<S>& a, const Matrix<S>& b, Expected expected) {
  expected.out = b.template cast<Real>();
  return error(a, expected) / 2;
}

template <class S>
bool same_bits(const Matrix<S>& a, const Matrix<S>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         (a.size() == 0 ||
          std::memcmp(a.data(), b.data(), sizeof(S) * static_cast<std::size_t>(a.size())) == 0);
}

/// The same for a partial result: the worst of out, log_normaliser and sign.
template <class S>
double error(const phiattn::Partial<S>& partial, const Expected& expected) {
  double worst = error(partial.out, expected);
  for (const Index i : expected.rows) {
    const auto came = static_cast<Real>(partial.log_normaliser(i));
    if (came != expected.log_normaliser(i)) {
      worst = worse(static_cast<double>(std::abs(came - expected.log_normaliser(i))) /
                        epsilon<S>(expected.condition(i)),
                    worst);
    }
    // Where rounding alone may be as large as the sum, it has no sign to be right about.
    const bool signed_at_all = epsilon<S>(expected.condition(i)) < 1;
    if (signed_at_all && static_cast<Real>(partial.sign(i)) != expected.sign(i)) return INFINITY;
  }
  return worst;
}

}  // namespace laws
