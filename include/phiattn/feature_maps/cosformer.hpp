#pragma once

// A map that knows where a token stands.

#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

#include <cmath>
#include <numbers>

namespace phiattn::inline PHIATTN_ABI {

/// cosFormer (Qin et al. 2022): non-negative scores that fade with the distance of the positions i and j,
///
///     sim(q_i, k_j) = relu(q_i) . relu(k_j) cos(pi (i - j) / (2M))
///     phi(x_i) = (relu(x_i) cos(pi i / (2M)), relu(x_i) sin(pi i / (2M)))         by cos(a - b)
///
/// Positions are 0-based. Those of keys count the tokens that the memory holds, so that tokens appended later come
/// later; those of queries are query_offset and on, or what read() is told; they are exact up to 2^53. A memory that
/// was merged from others holds each key at the place it had there: parts of one sequence cannot be merged.
///
/// M is the length for which the fading is meant. Up to |i - j| <= M no weight is negative. Beyond, the cosine is:
/// weights are negative for distances from M to 3M, and repeat after 4M. Nothing fails there but the meaning, and
/// attention reports the rows whose normaliser turned negative.
///
/// A query without a positive coordinate attends to nothing and gets 0. One that has none in common with any key it
/// sees has a normaliser of 0: it is NaN and is reported.
/// @param M  horizon, at least 1
/// @throws std::invalid_argument  if d < 1 or M < 1
/// Cost: 2 n d multiplications, n cosines and n sines for n tokens and 2 d features.
template <detail::ComputeScalar S>
class CosformerFeatures : public SignedFeatureMapBase<CosformerFeatures<S>, S> {
 public:
  CosformerFeatures(Index d, Index M) : dimension_(d), horizon_(M) {
    detail::check_at_least("dimension d of CosformerFeatures", d, 1);
    detail::check_at_least("M of CosformerFeatures", M, 1);
  }

  Index dimension() const { return dimension_; }
  Index horizon() const { return horizon_; }
  Index feature_dimension() const { return 2 * dimension_; }

  /// A row is divided by its largest coordinate, which goes to log_scale.
  void features(Side, const ConstMatrixRef<S>& x, Index first, FeatureBlock<S> block) const {
    for (Index t = 0; t < x.rows(); ++t) {
      const S size = detail::largest(x.row(t));
      if (size <= 0) {
        block.values.row(t).setZero();
        block.log_scale(t) = kNothing<S>;
        continue;
      }
      const double a = angle(first + t);
      auto relu = block.values.row(t).head(dimension_);
      relu = x.row(t).cwiseMax(S(0)) / size;
      block.values.row(t).tail(dimension_) = relu * static_cast<S>(std::sin(a));
      relu *= static_cast<S>(std::cos(a));
      block.log_scale(t) = std::log(size);
    }
  }

 private:
  /// pi position / (2M), less its full turns: these are exact to take off.
  double angle(Index position) const {
    const auto M = static_cast<double>(horizon_);
    return std::numbers::pi * std::fmod(static_cast<double>(position), 4 * M) / (2 * M);
  }

  Index dimension_;
  Index horizon_;
};

}  // namespace phiattn::inline PHIATTN_ABI
