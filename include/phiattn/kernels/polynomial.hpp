#pragma once

// The explicit kernels behind the tensor powers.

#include <phiattn/core/check.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/former_calls.hpp>
#include <phiattn/similarity.hpp>

#include <cmath>

namespace phiattn::inline PHIATTN_ABI {

/// Polynomial approximations of exp(q . k), x = q . k (Su 2021, "infinite-dimensional linear attention"):
///
///     taylor(n)             T_n(x) = sum_{m <= n} x^m / m!
///     exponential_limit(n)  (1 + x/n)^n
///
/// T_n is positive for even n, (1 + x/n)^n is not negative for even n; odd n turn negative for x << 0, and attention
/// reports the rows whose normaliser is. taylor(0) is uniform attention: every weight 1/n_k.
/// @throws std::invalid_argument  if n < 0 (taylor) or n < 1 (exponential_limit)
/// Cost of attention with it: 2 n_q n_k (d + dv + n) flops (taylor) or 2 n_q n_k (d + dv + log2 n).
template <detail::ComputeScalar S>
class PolynomialKernel : public detail::FormerKernelCalls<PolynomialKernel<S>, S> {
 public:
  using Scalar = S;
  using Kind = SignedKernelTag;
  static constexpr bool kScaleOnQueries = true;

  static PolynomialKernel taylor(Index n) {
    detail::check_at_least("degree n of PolynomialKernel::taylor", n, 0);
    return PolynomialKernel(n, Family::taylor);
  }

  static PolynomialKernel exponential_limit(Index n) {
    detail::check_at_least("degree n of PolynomialKernel::exponential_limit", n, 1);
    return PolynomialKernel(n, Family::exponential_limit);
  }

  Index degree() const { return degree_; }
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  /// Every row is divided by s^n, s = max(1, largest |base of the power| in it), so that no power overflows.
  void similarity(const ConstMatrixRef<S>& q, const ConstMatrixRef<S>& k, MatrixRef<S> tile,
                  VectorRef<S> log_scale) const {
    detail::multiply_transposed<S>(q, k, tile);
    detail::with_scratch<S>(1, tile.cols(), [&](Eigen::Map<Matrix<S>> scratch) {
      for (Index t = 0; t < tile.rows(); ++t) {
        auto x = tile.row(t).array();
        auto base = scratch.row(0).array();
        if (family_ == Family::exponential_limit) x = S(1) + x / static_cast<S>(degree_);
        const S size = x.abs().maxCoeff();
        const S s = degree_ > 0 && size > 1 ? size : S(1);  // degree 0 does not look, not even at infinity
        log_scale(t) = static_cast<S>(degree_) * std::log(s);
        base = x / s;
        if (family_ == Family::exponential_limit) {
          raise_to_degree(base, x);
        } else {
          sum_taylor(base, s, x);
        }
      }
    });
  }

 private:
  enum class Family { taylor, exponential_limit };

  PolynomialKernel(Index degree, Family family) : degree_(degree), family_(family) {}

  /// out <- base^n by squaring, which base does not survive.
  template <class Base, class Row>
  void raise_to_degree(Base& base, Row& out) const {
    out.setOnes();
    for (Index rest = degree_; rest > 0; rest /= 2) {
      if (rest % 2 == 1) out *= base;
      base *= base;
    }
  }

  /// out <- sum_m base^m s^(m-n) / m!, Horner's rule.
  template <class Base, class Row>
  void sum_taylor(const Base& base, S s, Row& out) const {
    const auto coefficient = [&](Index m) {
      return static_cast<S>(std::exp(static_cast<double>(m - degree_) * std::log(static_cast<double>(s)) -
                                     std::lgamma(static_cast<double>(m) + 1)));
    };
    out.setConstant(coefficient(degree_));
    for (Index m = degree_ - 1; m >= 0; --m) out = out * base + coefficient(m);
  }

  Index degree_;
  Family family_;
};

}  // namespace phiattn::inline PHIATTN_ABI
