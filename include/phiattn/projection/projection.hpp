#pragma once

// Random projections: m frequencies, a row each.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/projection/directions.hpp>
#include <phiattn/projection/hadamard.hpp>
#include <phiattn/projection/radii.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace phiattn::inline PHIATTN_ABI {

/// How sample_projection() draws its frequencies.
struct ProjectionOptions {
  Directions directions = Directions::orthogonal;
  Radii radii = Radii::chi;
  bool antithetic = true;  ///< every frequency comes with its negative
  std::uint64_t seed = 0;
};

namespace detail {

/// Frequencies as a matrix.
template <class S>
class DenseRows {
 public:
  /// @param transposed  (d, h): x times it is row-major throughout
  template <class Derived>
  explicit DenseRows(const Eigen::MatrixBase<Derived>& transposed)
      : rows_(transposed.cols()), transposed_(transposed.rows(), spread<S>(rows_)) {
    transposed_.leftCols(rows_) = transposed.template cast<S>();
  }

  /// Unit rows (h, d) times their radii (h).
  template <class D, class R>
  DenseRows(const Eigen::MatrixBase<D>& directions, const Eigen::MatrixBase<R>& radii)
      : DenseRows(directions.transpose() * radii.asDiagonal()) {}

  Index rows() const { return rows_; }
  Index cols() const { return transposed_.rows(); }
  void project(Rows<const S> x, Rows<S> out) const {
    multiply<S>(x, Rows<const S>(transposed_).left(rows_), out);
  }
  Matrix<S> matrix() const { return transposed_.leftCols(rows_).transpose(); }
  DenseRows scaled(S factor) const { return DenseRows(factor * transposed_.leftCols(rows_)); }

 private:
  Index rows_;
  Matrix<S> transposed_;  // (d, h) and what rows are spread by
};

}  // namespace detail

template <detail::ComputeScalar S>
class Projection;

template <detail::ComputeScalar S>
Projection<S> sample_projection(Index m, Index d, const ProjectionOptions& options = {});

/// An (m, d) matrix omega of frequencies, one a row, each with a log-weight ln w_i (0 unless given), for
///
///     exp(q . k) ~ 1/m sum_i w_i exp(omega_i . q - |q|^2/2) exp(omega_i . k - |k|^2/2)
///
/// Weights are what makes frequencies of another distribution, or nodes of a quadrature, stand for N(0, I).
/// Immutable; copies share its storage. Made by sample_projection(), or from any matrix expression whose
/// scalar is S or a narrower one.
template <detail::ComputeScalar S>
class Projection {
 public:
  /// @param omega  (m, d), copied
  /// @throws std::invalid_argument  if omega has no rows or no columns
  template <class Derived>
  explicit Projection(const Eigen::MatrixBase<Derived>& omega)
      : Projection(omega.rows(), detail::DenseRows<S>(transposed(omega)), {}) {}

  /// @param log_weights  (m), a row or a column, copied
  /// @throws std::invalid_argument  also if there are not m log-weights, or one is not finite
  template <class Derived>
  Projection(const Eigen::MatrixBase<Derived>& omega, const Input<S>& log_weights)
      : Projection(omega.rows(), detail::DenseRows<S>(transposed(omega)),
                   checked(log_weights, omega.rows())) {}

  Index rows() const { return rows_; }
  Index cols() const {
    return std::visit([](const auto& base) { return base.cols(); }, parts_->base);
  }

  /// out <- x omega^T; x (n, d) and out (n, m) must not overlap.
  ///
  /// @throws std::invalid_argument  if the shapes do not fit
  /// Cost: 2 n m d flops, O(n m log d) for Hadamard directions, half of it if antithetic.
  void project(Rows<const S> x, Rows<S> out) const;

  /// omega itself, (m, d).
  Matrix<S> matrix() const;

  /// ln w_i, (m); of size 0 if all are 0.
  const Vector<S>& log_weights() const { return parts_->log_weights; }

  /// The same with the frequencies times `factor`.
  Projection scaled(S factor) const;

  /// The same with `log_weights` (m) added to its own.
  /// @throws std::invalid_argument  if there are not m of them, or one is not finite
  Projection weighted(const Input<S>& log_weights) const;

 private:
  friend Projection sample_projection<S>(Index m, Index d, const ProjectionOptions& options);

  using Base = std::variant<detail::DenseRows<S>, detail::HadamardRows<S>>;
  struct Parts {
    Base base;
    Vector<S> log_weights;
  };

  Projection(Index rows, Base base, Vector<S> log_weights)
      : rows_(rows), parts_(std::make_shared<const Parts>(Parts{std::move(base), std::move(log_weights)})) {}

  template <class Derived>
  static Matrix<S> transposed(const Eigen::MatrixBase<Derived>& omega) {
    using T = typename Derived::Scalar;
    static_assert(detail::StorageScalar<T>,
                  "phiattn: a projection is made of float, double, half or bfloat16");
    static_assert(!detail::StorageScalar<T> || detail::widens_to<T, S>,
                  "phiattn: a projection would narrow; cast it, or use Projection<double>");
    detail::check_at_least("rows of omega", omega.rows(), 1);
    detail::check_at_least("columns of omega", omega.cols(), 1);
    return omega.derived().template cast<S>().transpose();
  }

  static Vector<S> checked(const Input<S>& log_weights, Index m);

  /// The last rows of omega that are the first ones negated, and not stored.
  Index negatives() const {
    return rows_ - std::visit([](const auto& base) { return base.rows(); }, parts_->base);
  }

  Index rows_;
  std::shared_ptr<const Parts> parts_;
};

template <detail::ComputeScalar S>
void Projection<S>::project(Rows<const S> x, Rows<S> out) const {
  detail::check_equal("columns of x", x.cols, "columns of omega", cols());
  detail::check_equal("rows of out", out.rows, "rows of x", x.rows);
  detail::check_equal("columns of out", out.cols, "rows of omega", rows());
  const Index h = rows_ - negatives();
  std::visit([&](const auto& base) { base.project(x, out.left(h)); }, parts_->base);
  for (Index t = 0; t < out.rows; ++t) {
    S* const row = out.row(t);
    for (Index i = h; i < rows_; ++i) row[i] = -row[i - h];
  }
}

template <detail::ComputeScalar S>
Matrix<S> Projection<S>::matrix() const {
  Matrix<S> omega(rows(), cols());
  omega.topRows(rows() - negatives()) =
      std::visit([](const auto& base) { return base.matrix(); }, parts_->base);
  omega.bottomRows(negatives()) = -omega.topRows(negatives());
  return omega;
}

template <detail::ComputeScalar S>
Projection<S> Projection<S>::scaled(S factor) const {
  return std::visit([&](const auto& base) { return Projection(rows_, base.scaled(factor), log_weights()); },
                    parts_->base);
}

template <detail::ComputeScalar S>
Projection<S> Projection<S>::weighted(const Input<S>& log_weights) const {
  Vector<S> sum = checked(log_weights, rows_);
  if (parts_->log_weights.size() > 0) sum += parts_->log_weights;
  return std::visit([&](const auto& base) { return Projection(rows_, base, std::move(sum)); }, parts_->base);
}

template <detail::ComputeScalar S>
Vector<S> Projection<S>::checked(const Input<S>& log_weights, Index m) {
  detail::check_vector("log_weights", log_weights.rows(), log_weights.cols(), "rows of omega", m);
  Matrix<S> column(m, 1);
  log_weights.as_column().load(0, S(1), column);
  for (Index i = 0; i < m; ++i) {
    if (std::isfinite(column(i, 0))) continue;
    detail::fail_argument("log-weight " + std::to_string(i) + ": got " + detail::number(column(i, 0)) +
                          ", expected a finite number");
  }
  return column;
}

/// m random frequencies in d dimensions, omega_i = R_i u_i with radii R_i and directions u_i:
///
///     exp(q . k) = E[exp(omega . q - |q|^2/2) exp(omega . k - |k|^2/2)],   omega ~ N(0, I)
///
/// (Choromanski et al. 2021, Lemma 1; https://kexue.fm/archives/7921). The rows sampled are h = ceil(m/2) if
/// antithetic, h = m if not; the remaining ones are row h + i = -row i. The mean over the rows is unbiased
/// with radii chi and stratified, for all directions but hadamard. The exception is antithetic stratified
/// with m odd: row h has no negative and counts half as much as its stratum, the outermost, ought to.
///
/// hadamard is unbiased only in the limit of large d. For d <= 8 it is orthogonal instead; from d = 9 on its
/// bias at |q + k| = 1 is measured to be below 1e-3 of exp(q . k). simplex has less variance than orthogonal
/// without antithetic rows, and more with them, since they turn its obtuse angles into acute ones; antithetic
/// orthogonal rows are better than either.
///
/// The result is a function of (m, d, options) alone. Sampling is in double, rounded to S once.
/// @throws std::invalid_argument  if m or d is less than 1
/// Cost: h d normals; orthogonal and simplex directions also O(h d^2); hadamard O(h) in all.
template <detail::ComputeScalar S>
Projection<S> sample_projection(Index m, Index d, const ProjectionOptions& options) {
  detail::check_at_least("rows of omega (m)", m, 1);
  detail::check_at_least("columns of omega (d)", d, 1);
  constexpr std::uint64_t kDirections = 0, kRadii = 1;  // streams
  const Philox for_directions(options.seed, kDirections), for_radii(options.seed, kRadii);
  const Index h = options.antithetic ? m - m / 2 : m;
  const Index padded = detail::HadamardRows<S>::padded(d);
  Directions kind = options.directions;
  if (kind == Directions::hadamard) {
    if (padded >= detail::HadamardRows<S>::kSmallest) {
      const Vector<double> radii = sample_radii(h, padded, options.radii, for_radii);
      return Projection<S>(m, detail::HadamardRows<S>(d, radii, for_directions), {});
    }
    kind = Directions::orthogonal;
  }
  const Matrix<double> directions = sample_directions(h, d, kind, for_directions);
  const Vector<double> radii = sample_radii(h, d, options.radii, for_radii);
  return Projection<S>(m, detail::DenseRows<S>(directions, radii), {});
}

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class Projection<float>;
extern template class Projection<double>;
extern template Projection<float> sample_projection<float>(Index, Index, const ProjectionOptions&);
extern template Projection<double> sample_projection<double>(Index, Index, const ProjectionOptions&);
}  // namespace phiattn::inline PHIATTN_ABI
#endif
