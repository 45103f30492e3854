#pragma once

// Random projections: m frequencies, a row each. Next: feature_maps/positive_random.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/projection/directions.hpp>
#include <phiattn/projection/radii.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace phiattn {

/// How sample_projection() draws its frequencies.
struct ProjectionOptions {
  Directions directions = Directions::orthogonal;
  Radii radii = Radii::chi;
  bool antithetic = true;  ///< every frequency comes with its negative
  std::uint64_t seed = 0;
};

template <detail::ComputeScalar S>
class Projection;

template <detail::ComputeScalar S>
Projection<S> sample_projection(Index m, Index d, const ProjectionOptions& options = {});

/// An (m, d) matrix omega of frequencies, one a row. Immutable; copies share its storage.
///
/// Made by sample_projection(), or from any matrix expression whose scalar is S or a narrower one.
template <detail::ComputeScalar S>
class Projection {
 public:
  /// @param omega  (m, d), copied
  /// @throws std::invalid_argument  if omega has no rows or no columns
  template <class Derived>
  explicit Projection(const Eigen::MatrixBase<Derived>& omega) : rows_(omega.rows()) {
    using T = typename Derived::Scalar;
    static_assert(detail::StorageScalar<T>,
                  "phiattn: a projection is made of float, double, half or bfloat16");
    static_assert(!detail::StorageScalar<T> || detail::widens_to<T, S>,
                  "phiattn: a projection would narrow; cast it, or use Projection<double>");
    detail::check_at_least("rows of omega", omega.rows(), 1);
    detail::check_at_least("columns of omega", omega.cols(), 1);
    base_ = std::make_shared<const Matrix<S>>(omega.derived().template cast<S>().transpose());
  }

  Index rows() const { return rows_; }
  Index cols() const { return base_->rows(); }

  /// out <- x omega^T; x (n, d) and out (n, m) must not overlap.
  ///
  /// @throws std::invalid_argument  if the shapes do not fit
  /// Cost: 2 n m d flops, half of that if antithetic.
  void project(const ConstMatrixRef<S>& x, MatrixRef<S> out) const {
    detail::check_equal("columns of x", x.cols(), "columns of omega", cols());
    detail::check_equal("rows of out", out.rows(), "rows of x", x.rows());
    detail::check_equal("columns of out", out.cols(), "rows of omega", rows());
    detail::multiply<S>(x, *base_, out.leftCols(base_->cols()));
    out.rightCols(negatives()) = -out.leftCols(negatives());
  }

  /// omega itself, (m, d).
  Matrix<S> matrix() const {
    Matrix<S> omega(rows(), cols());
    omega.topRows(base_->cols()) = base_->transpose();
    omega.bottomRows(negatives()) = -omega.topRows(negatives());
    return omega;
  }

 private:
  friend Projection sample_projection<S>(Index m, Index d, const ProjectionOptions& options);

  Projection(Index rows, Matrix<S> base)
      : rows_(rows), base_(std::make_shared<const Matrix<S>>(std::move(base))) {}

  /// The last rows of omega that are the first ones negated, and not stored.
  Index negatives() const { return rows_ - base_->cols(); }

  Index rows_;
  std::shared_ptr<const Matrix<S>> base_;  // (d, h), transposed: x times base_ is row-major throughout
};

/// m random frequencies in d dimensions, omega_i = R_i u_i with radii R_i and directions u_i:
///
///     exp(q . k) = E[exp(omega . q - |q|^2/2) exp(omega . k - |k|^2/2)],   omega ~ N(0, I)
///
/// (Choromanski et al. 2021, Lemma 1; https://kexue.fm/archives/7921). The rows sampled are h = ceil(m/2) if
/// antithetic, h = m if not; the remaining ones are row h + i = -row i. The mean over the rows is unbiased
/// for all directions with radii chi and stratified. The exception is antithetic stratified with m odd: row h
/// has no negative and counts half as much as its stratum, the outermost, ought to.
///
/// The result is a function of (m, d, options) alone. Sampling is in double, rounded to S once.
/// @throws std::invalid_argument  if m or d is less than 1
/// Cost: h d normals; orthogonal directions also O(h d^2).
template <detail::ComputeScalar S>
Projection<S> sample_projection(Index m, Index d, const ProjectionOptions& options) {
  detail::check_at_least("rows of omega (m)", m, 1);
  detail::check_at_least("columns of omega (d)", d, 1);
  enum Stream : std::uint64_t { kDirections, kRadii };
  const Index h = options.antithetic ? m - m / 2 : m;
  const Matrix<double> directions =
      sample_directions(h, d, options.directions, Philox(options.seed, kDirections));
  const Vector<double> radii = sample_radii(h, d, options.radii, Philox(options.seed, kRadii));
  return Projection<S>(m, (directions.transpose() * radii.asDiagonal()).template cast<S>());
}

}  // namespace phiattn
