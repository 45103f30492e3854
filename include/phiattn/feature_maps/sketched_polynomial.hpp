#pragma once

// What sketches of polynomials share.

#include <phiattn/core/check.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace phiattn::inline PHIATTN_ABI {

/// c_0 ... c_n of the polynomial sum_j c_j x^j that a family stands for: 1/j!, or n! / (j! (n-j)! n^j).
inline Vector<double> polynomial_coefficients(TensorPower family, Index n) {
  Vector<double> c(n + 1);
  c(0) = 1;
  for (Index j = 1; j <= n; ++j) {
    const double step =
        family == TensorPower::taylor ? 1 : static_cast<double>(n - j + 1) / static_cast<double>(n);
    c(j) = c(j - 1) * step / static_cast<double>(j);
  }
  return c;
}

/// Base of the sketches of sum_j c_j (q . k)^j, for degrees n where tensor powers have too many features:
///
///     phi(x) = [sqrt(c_0), sqrt(c_1) x, a random sketch of the degrees 2 ... n]
///
/// The first two degrees are exact, in 1 + d of the m features; E[phi(q) . phi(k)] is the polynomial. As for tensor
/// powers a row is divided by s^n, s = max(1, |x|), which goes to log_scale, so that no power overflows. Sketches
/// are signed even where the polynomial is positive.
/// `Derived` writes sketch(y, powers, features): the m - 1 - d features of tokens y = x/s, where powers(t, j) is
/// s_t^{j-n}, and scratch_columns(), the room it takes for a token.
template <class Derived, detail::ComputeScalar S>
class SketchedPolynomial : public SignedFeatureMapBase<Derived, S> {
 public:
  static constexpr bool kUniform = true;

  Index dimension() const { return dimension_; }
  Index degree() const { return coefficients_.size() - 1; }
  Index feature_dimension() const { return feature_dimension_; }
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    const Index n = degree(), d = dimension_, own = n + 1 + d;
    const Index columns = own + derived().scratch_columns();
    const Index together = std::max<Index>(1, detail::kCacheScratch<S> / columns);
    for (Index begin = 0; begin < x.rows(); begin += together) {
      const Index count = (std::min)(together, x.rows() - begin);
      detail::with_scratch<S>(count, columns, [&](Eigen::Map<Matrix<S>> scratch) {
        auto powers = scratch.leftCols(n + 1);
        auto y = scratch.middleCols(n + 1, d);
        auto out = block.values.middleRows(begin, count);
        for (Index t = 0; t < count; ++t) {
          const S norm = x.row(begin + t).norm();
          const S s = norm > 1 ? norm : S(1);
          y.row(t) = x.row(begin + t) / s;
          for (Index j = 0; j <= n; ++j) powers(t, j) = std::pow(s, static_cast<S>(j - n));
          block.log_scale(begin + t) = static_cast<S>(n) * std::log(s);
          out(t, 0) = powers(t, 0);
          out.row(t).segment(1, d) = root_coefficient(1) * powers(t, 1) * y.row(t);
        }
        derived().sketch(y, powers, out.rightCols(sketch_dimension()), scratch.rightCols(columns - own));
      });
    }
  }

 protected:
  /// @throws std::invalid_argument  if d < 1, n < 2, or m < d + n: a feature for each degree from 2 on
  SketchedPolynomial(TensorPower family, Index d, Index n, Index m) : dimension_(d), feature_dimension_(m) {
    detail::check_at_least("dimension d of a sketch", d, 1);
    detail::check_at_least("degree n of a sketch", n, 2);
    detail::check_at_least("features m of a sketch, with its d + n the least", m, d + n);
    coefficients_ = polynomial_coefficients(family, n);
  }

  Index sketch_dimension() const { return feature_dimension_ - 1 - dimension_; }
  double coefficient(Index j) const { return coefficients_(j); }
  S root_coefficient(Index j) const { return static_cast<S>(std::sqrt(coefficients_(j))); }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }

  Index dimension_;
  Index feature_dimension_;
  Vector<double> coefficients_;
};

}  // namespace phiattn::inline PHIATTN_ABI
