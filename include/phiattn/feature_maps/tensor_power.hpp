#pragma once

// Polynomial kernels as dot products of tensor powers.

#include <phiattn/core/check.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// How a tensor power is laid out: every monomial once, or literally, with all its permutations.
enum class TensorLayout { symmetric, full };

/// A tensor power of more features than this is refused.
inline constexpr Index kMaxFeatureDimension = Index{1} << 22;

enum class TensorPower { taylor, exponential_limit };

/// Tensor powers whose dot product is a polynomial of x = q . k   (Su 2021, "infinite-dimensional linear attention"):
///
///     taylor             phi(q) . phi(k) = sum_{m <= n} x^m / m!
///     exponential_limit  phi(q) . phi(k) = (1 + x/n)^n
///
/// Symmetric layout (default), one feature for each multi-index alpha with |alpha| <= n, by degree and then
/// lexicographically:
///
///     phi_alpha(x) = sqrt(w_|alpha| / alpha!) x^alpha,   w_m = 1 (taylor),  n! / ((n-m)! n^m) (exponential limit)
///
/// Full layout: (1, x, x(x)x / sqrt(2!), ...), of sum_m d^m features, or the n-th tensor power of (1, x/sqrt(n)), of
/// (d+1)^n. A row is divided by s^n, s = max(1, |x|), which goes to log_scale, so that no power overflows.
/// Made by TaylorFeatures and ExponentialLimitFeatures.
/// Cost: n_tokens m multiplications for m = C(d+n, n) features; it is m that grows: d = 64 has 2145 for n = 2, 47905
/// for n = 3.
template <detail::ComputeScalar S>
class TensorPowerFeatures : public SignedFeatureMapBase<TensorPowerFeatures<S>, S> {
 public:
  static constexpr bool kUniform = true;

  /// @throws std::invalid_argument  if d < 1, n < 0, or n < 1 for the exponential limit
  /// @throws std::length_error      if there were more than kMaxFeatureDimension features
  TensorPowerFeatures(TensorPower family, Index d, Index n, TensorLayout layout = TensorLayout::symmetric)
      : family_(family), layout_(layout), dimension_(d), degree_(n) {
    detail::check_at_least("dimension d of a tensor power", d, 1);
    detail::check_at_least("degree n of a tensor power", n, family == TensorPower::taylor ? 0 : 1);
    if (layout == TensorLayout::full && family == TensorPower::exponential_limit) {
      feature_dimension_ = 1;
      for (Index m = 0; m < n; ++m) feature_dimension_ = checked(feature_dimension_ * (d + 1));
    } else {
      lay_out_degrees();
    }
  }

  Index dimension() const { return dimension_; }
  Index degree() const { return degree_; }
  Index feature_dimension() const { return feature_dimension_; }
  static double default_scale(Index d) { return inverse_sqrt_scale(d); }

  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    detail::with_scratch<S>(1, dimension_, [&](Eigen::Map<Matrix<S>> scratch) {
      for (Index t = 0; t < x.rows(); ++t)
        block.log_scale(t) = fill_row(x.row(t), scratch.row(0), block.values.row(t).data());
    });
  }

 private:
  using Row = Eigen::Ref<RowVector<S>>;
  using ConstRow = Eigen::Ref<const RowVector<S>>;

  /// The features of x, divided by s^n; returns n ln s.
  S fill_row(const ConstRow& x, Row y, S* out) const {
    const S norm = x.norm();
    const S s = degree_ > 0 && norm > 1 ? norm : S(1);  // degree 0 does not look, not even at infinity
    y = x / s;
    if (!degrees_) {
      fill_power(y, 1 / s, out);
    } else {
      layout_ == TensorLayout::symmetric ? fill_monomials(y, out) : fill_tensors(y, out);
      for (Index m = 0; m < degree_; ++m) {
        const auto [start, end] = degree_range(m);
        Eigen::Map<RowVector<S>>(out + start, end - start) *= std::pow(s, static_cast<S>(m - degree_));
      }
    }
    return static_cast<S>(degree_) * std::log(s);
  }

  /// A monomial x_{i_1} ... x_{i_m}, i_1 <= ... <= i_m: its last index and how often that one occurs.
  struct Monomial {
    Index last;
    Index run;
  };
  struct Degrees {
    std::vector<Index> start;         // of degree m; start[n+1] is the end
    std::vector<Monomial> monomials;  // of degree < n, symmetric layout only
  };

  Index checked(Index features) const {
    if (features > kMaxFeatureDimension) {
      detail::fail_length("tensor power of dimension d = " + std::to_string(dimension_) +
                          " and degree n = " + std::to_string(degree_) + ": more than " +
                          std::to_string(kMaxFeatureDimension) + " features, the limit kMaxFeatureDimension");
    }
    return features;
  }

  void lay_out_degrees() {
    auto degrees = std::make_shared<Degrees>();
    degrees->start = {0, 1};
    Index of_degree = 1;  // d^m, or C(d+m-1, m)
    for (Index m = 1; m <= degree_; ++m) {
      of_degree =
          layout_ == TensorLayout::full ? of_degree * dimension_ : of_degree * (dimension_ + m - 1) / m;
      degrees->start.push_back(checked(degrees->start.back() + checked(of_degree)));
    }
    feature_dimension_ = degrees->start.back();
    if (layout_ == TensorLayout::symmetric && degree_ > 0) {
      auto& monomials = degrees->monomials;
      monomials.reserve(static_cast<std::size_t>(degrees->start[static_cast<std::size_t>(degree_)]));
      monomials.push_back({0, 0});
      for (std::size_t p = 0;
           static_cast<Index>(monomials.size()) < degrees->start[static_cast<std::size_t>(degree_)]; ++p) {
        const Monomial parent = monomials[p];
        monomials.push_back({parent.last, parent.run + 1});
        for (Index i = parent.last + 1; i < dimension_; ++i) monomials.push_back({i, 1});
      }
    }
    degrees_ = std::move(degrees);
  }

  struct Range {
    Index start;
    Index end;
  };
  Range degree_range(Index m) const {
    const auto i = static_cast<std::size_t>(m);
    return {degrees_->start[i], degrees_->start[i + 1]};
  }

  /// sqrt(w_m / w_{m-1})
  S step(Index m) const {
    if (family_ == TensorPower::taylor) return 1;
    return std::sqrt(static_cast<S>(degree_ - m + 1) / static_cast<S>(degree_));
  }

  /// Each monomial of degree m - 1 times x_last, x_last+1, ...: all of degree m, each once.
  void fill_monomials(const ConstRow& y, S* out) const {
    out[0] = 1;
    for (Index m = 1; m <= degree_; ++m) {
      const auto [parents, parents_end] = degree_range(m - 1);
      S* child = out + parents_end;
      for (Index p = parents; p < parents_end; ++p) {
        const auto [last, run] = degrees_->monomials[static_cast<std::size_t>(p)];
        const Index width = dimension_ - last;
        Eigen::Map<RowVector<S>>(child, width) = (step(m) * out[p]) * y.tail(width);
        child[0] /= std::sqrt(static_cast<S>(run + 1));
        child += width;
      }
    }
  }

  /// x (x) ... (x) x / sqrt(m!) for m = 0 ... n
  void fill_tensors(const ConstRow& y, S* out) const {
    out[0] = 1;
    for (Index m = 1; m <= degree_; ++m) {
      const auto [parents, parents_end] = degree_range(m - 1);
      S* child = out + parents_end;
      for (Index p = parents; p < parents_end; ++p, child += dimension_) {
        Eigen::Map<RowVector<S>>(child, dimension_) = (out[p] / std::sqrt(static_cast<S>(m))) * y;
      }
    }
  }

  /// (one, y/sqrt(n)) (x) ... (x) (one, y/sqrt(n)), grown in place from the back.
  void fill_power(const ConstRow& y, S one, S* out) const {
    const S root_n = std::sqrt(static_cast<S>(degree_));
    out[0] = 1;
    Index size = 1;
    for (Index m = 0; m < degree_; ++m, size *= dimension_ + 1) {
      for (Index p = size - 1; p >= 0; --p) {
        const S parent = out[p];
        S* child = out + p * (dimension_ + 1);
        child[0] = parent * one;
        Eigen::Map<RowVector<S>>(child + 1, dimension_) = (parent / root_n) * y;
      }
    }
  }

  TensorPower family_;
  TensorLayout layout_;
  Index dimension_;
  Index degree_;
  Index feature_dimension_ = 0;
  std::shared_ptr<const Degrees> degrees_;  // none for the full exponential limit
};

/// phi(q) . phi(k) = sum_{m <= n} (q . k)^m / m!: the Taylor polynomial of exp(q . k).
///
/// Relative error about x^{n+1} e^{-x} / (n+1)! in x = q . k: good while |q . k| is below about n/2. Even n keep every
/// weight positive; odd n turn negative for q . k << 0, and attention reports the rows where they do.
/// @param d  dimension of q and k      @param n  degree
template <detail::ComputeScalar S>
class TaylorFeatures : public TensorPowerFeatures<S> {
 public:
  TaylorFeatures(Index d, Index n, TensorLayout layout = TensorLayout::symmetric)
      : TensorPowerFeatures<S>(TensorPower::taylor, d, n, layout) {}
};

/// phi(q) . phi(k) = (1 + q . k / n)^n, which tends to exp(q . k).
///
/// Relative error about (q . k)^2 / (2n). Even n keep every weight non-negative.
/// @param d  dimension of q and k      @param n  degree
template <detail::ComputeScalar S>
class ExponentialLimitFeatures : public TensorPowerFeatures<S> {
 public:
  ExponentialLimitFeatures(Index d, Index n, TensorLayout layout = TensorLayout::symmetric)
      : TensorPowerFeatures<S>(TensorPower::exponential_limit, d, n, layout) {}
};

}  // namespace phiattn::inline PHIATTN_ABI
