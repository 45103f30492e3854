#pragma once

// Polynomials sketched by products of random signs.

#include <phiattn/core/product.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/feature_maps/sketched_polynomial.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// Random Maclaurin features (Kar & Karnick 2012) of the Taylor polynomial or of (1 + q . k / n)^n:
///
///     phi_r(x) = sqrt(c_N / (p_N M)) prod_{l <= N} sigma_{r,l} . x
///
/// for M = m - 1 - d features beside the exact ones of SketchedPolynomial, with signs sigma of +-1 and degrees N drawn
/// with probability p_N proportional to 2^-N, N = 2 ... n. E[phi(q) . phi(k)] = sum_j c_j (q . k)^j.
///
/// Variance, of which the series is all that grows:
///
///     1/M (sum_{j=2}^n c_j^2 V^j / p_j - (sum_{j=2}^n c_j (q . k)^j)^2)
///     V = E[(sigma . q)^2 (sigma . k)^2] = |q|^2 |k|^2 + 2 (q . k)^2 - 2 sum_i q_i^2 k_i^2
///
/// It works at |q| |k| below about 1 and any degree, n = 20 standing for exp(q . k) itself; beyond, degrees are drawn
/// too low, and a product of N projections is too noisy (TensorSketchFeatures is less so, and costs less).
/// @param d  dimension of q and k      @param n  degree, at least 2      @param m  features, at least d + n
/// @throws std::invalid_argument  if d, n or m is less
/// Cost: 2 n_tokens d sum_r N_r flops, where N_r is 3 on average.
template <detail::ComputeScalar S>
class RandomMaclaurinFeatures : public SketchedPolynomial<RandomMaclaurinFeatures<S>, S> {
 public:
  RandomMaclaurinFeatures(TensorPower family, Index d, Index n, Index m, std::uint64_t seed = 0)
      : SketchedPolynomial<RandomMaclaurinFeatures, S>(family, d, n, m) {
    constexpr std::uint64_t kDegrees = 0, kSigns = 1;  // streams
    const Philox for_degrees(seed, kDegrees), for_signs(seed, kSigns);
    const Index features = this->sketch_dimension();
    auto parts = std::make_shared<Parts>();
    for (Index r = 0; r < features; ++r) {
      parts->degrees.push_back(drawn_degree(for_degrees.uniform(static_cast<std::uint64_t>(r)), n));
    }
    // High degrees first: the features that have an l-th factor are the first ones.
    std::sort(parts->degrees.begin(), parts->degrees.end(), std::greater<>());
    std::uint64_t next = 0;
    for (Index l = 1; l <= parts->degrees.front(); ++l) {
      parts->signs.emplace_back(d, std::count_if(parts->degrees.begin(), parts->degrees.end(),
                                                 [l](Index degree) { return degree >= l; }));
      for (S& sign : parts->signs.back().reshaped()) sign = for_signs.uniform(next++) < 0.5 ? S(-1) : S(1);
    }
    parts->weights.resize(features);
    for (Index r = 0; r < features; ++r) {
      const Index degree = this->degree_of(*parts, r);
      parts->weights(r) = static_cast<S>(std::sqrt(
          this->coefficient(degree) / (degree_probability(degree, n) * static_cast<double>(features))));
    }
    parts_ = std::move(parts);
  }

  /// N_r of the M sketched features, which are the last ones, in order.
  const std::vector<Index>& degrees() const { return parts_->degrees; }

  /// sigma_{r,l}, the columns of a (d, number of r with N_r >= l) matrix, for l = 1 ... N_1.
  const Matrix<S>& signs(Index l) const { return parts_->signs[static_cast<std::size_t>(l - 1)]; }

  /// p_j = 2^-j / sum_{i=2}^n 2^-i
  static double degree_probability(Index j, Index n) {
    return std::exp2(static_cast<double>(1 - j)) / (1 - std::exp2(static_cast<double>(1 - n)));
  }

 private:
  friend class SketchedPolynomial<RandomMaclaurinFeatures, S>;

  struct Parts {
    std::vector<Index> degrees;
    std::vector<Matrix<S>> signs;
    RowVector<S> weights;
  };

  static Index degree_of(const Parts& parts, Index r) { return parts.degrees[static_cast<std::size_t>(r)]; }

  static Index drawn_degree(double u, Index n) {
    Index degree = 2;
    for (; degree < n; ++degree) {
      u -= degree_probability(degree, n);
      if (u < 0) break;
    }
    return degree;
  }

  Index scratch_columns() const { return this->sketch_dimension(); }

  void sketch(const ConstMatrixRef<S>& y, const ConstMatrixRef<S>& powers, MatrixRef<S> features,
              MatrixRef<S> scratch) const {
    detail::multiply<S>(y, parts_->signs[0], features);
    for (std::size_t l = 1; l < parts_->signs.size(); ++l) {
      auto factor = scratch.leftCols(parts_->signs[l].cols());
      detail::multiply<S>(y, parts_->signs[l], factor);
      features.leftCols(factor.cols()).array() *= factor.array();
    }
    for (Index t = 0; t < y.rows(); ++t) {
      for (Index r = 0; r < features.cols(); ++r) {
        features(t, r) *= parts_->weights(r) * powers(t, degree_of(*parts_, r));
      }
    }
  }

  std::shared_ptr<const Parts> parts_;
};

}  // namespace phiattn::inline PHIATTN_ABI
