#pragma once

// Exponentials of a weighted cosine transform.

#include <phiattn/core/check.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// The orthonormal cosine transform (DCT-II), (d, d), one frequency a row.
template <class S = double>
Matrix<S> cosine_transform(Index d) {
  const auto size = static_cast<S>(d);
  return Matrix<S>::NullaryExpr(d, d, [size](Index j, Index i) {
    const S angle = std::numbers::pi_v<S> * static_cast<S>((2 * i + 1) * j) / (2 * size);
    return std::sqrt(S(j == 0 ? 1 : 2) / size) * std::cos(angle);
  });
}

}  // namespace detail

/// The frequencies T C of DiJiang: row i is t_i c_{i mod d}, c the rows of the cosine transform and t_i = Phi^{-1}(U_i)
/// with Phi the standard normal distribution and U_i uniform.
///
/// DiJiang has m = d; more rows go through the transform again with other t_i.
/// @throws std::invalid_argument  if m or d is less than 1
template <detail::ComputeScalar S>
Projection<S> sample_dijiang_projection(Index m, Index d, std::uint64_t seed = 0) {
  detail::check_at_least("rows of T C (m)", m, 1);
  detail::check_at_least("columns of T C (d)", d, 1);
  const Matrix<double> transform = detail::cosine_transform(d);
  const Philox random(seed);
  Matrix<double> rows(m, d);
  for (Index i = 0; i < m; ++i)
    rows.row(i) = random.normal(static_cast<std::uint64_t>(i)) * transform.row(i % d);
  return Projection<S>(rows.template cast<S>());
}

/// What divides the features of a token.
enum class DiJiangNormalisation {
  none,     ///< phi(x) = D exp(T C x), the paper's map
  softmax,  ///< phi(x) = D exp(T C x) / sum_i exp((T C x)_i), that of the authors' models
};

/// Weighted features of the discrete cosine transform (Chen, Liu, Wang, Tian & Wang 2024, "DiJiang: Efficient large
/// language models through compact kernelization"; https://github.com/YuchuanTian/DiJiang):
///
///     phi(x) = D exp(T C x)        C the cosine transform, T and D diagonal
///
/// Projection weights ln w_i stand for D_i = sqrt(w_i). The paper trains D with the model, from which it also takes a
/// decay of the past and a gate; none of that is here, and D = 1 unless given. Its models multiply by the transposed C.
///
/// Untrained it is no approximation of exp(q . k), and does not tend to one as m grows. To be frequencies of
/// exp(|q + k|^2/2), those of N(0, I), the rows of T C would need lengths of about sqrt(d), and theirs are |t_i| ~ 1: the
/// mean over T, for z = q + k, is 1/d sum_i exp((c_i . z)^2 / 2) and not exp(|z|^2 / 2). Nor is there the factor
/// exp(-|x|^2/2), so that of two keys the longer gets more (softmax: less so). On Gaussian tokens and on heads of trained
/// models its outputs are as far from softmax attention's as those of uniform attention are. It is a similarity of its
/// own, for a model that is trained with it. Default scale 1/sqrt(d), that of the attention it replaces.
///
/// Taking T C, or sqrt(d) T C, whose second moments are right, for the frequencies of PositiveRandomFeatures does not
/// help: only d directions occur, and along them the mean is 1/d sum_i exp(d (c_i . z)^2 / 2), which is larger than
/// exp(|z|^2 / 2) from the fourth order on, and explodes.
/// @throws std::invalid_argument  if the projection has no rows or no columns
/// Cost: 2 n m d flops for n tokens (no fast transform: at the d of attention heads a dense product is as fast) and,
/// for softmax, n m exponentials.
template <detail::ComputeScalar S>
class DiJiangFeatures : public LogFeatureMapBase<DiJiangFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;
  static constexpr bool kNeverZero = true;

  explicit DiJiangFeatures(Projection<S> projection,
                           DiJiangNormalisation normalisation = DiJiangNormalisation::none)
      : projection_(std::move(projection)), normalisation_(normalisation) {}

  Index dimension() const { return projection_.cols(); }
  Index feature_dimension() const { return projection_.rows(); }
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  const Projection<S>& projection() const { return projection_; }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    projection_.project(x, block.values);
    block.log_scale.setZero();
    const Vector<S>& log_weights = projection_.log_weights();
    for (Index t = 0; t < x.rows(); ++t) {
      auto row = block.values.row(t);
      if (normalisation_ == DiJiangNormalisation::softmax) {
        const S largest = detail::largest(row);
        block.log_scale(t) = -largest - std::log((row.array() - largest).exp().sum());
      }
      if (log_weights.size() > 0) row += log_weights.transpose() / 2;
    }
  }

 private:
  Projection<S> projection_;
  DiJiangNormalisation normalisation_;
};

}  // namespace phiattn::inline PHIATTN_ABI
