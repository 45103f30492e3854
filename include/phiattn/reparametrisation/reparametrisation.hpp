#pragma once

// Other queries and keys with the same attention. Next: reparametrisation/calibration.hpp.

#include <phiattn/core/calibration.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>

#include <Eigen/LU>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace phiattn {

namespace detail {

/// What is done to one side: x' = linear (x - shift), with the log-factor slope . (x - shift) + constant.
struct AffineSide {
  Matrix<double> linear;
  Vector<double> shift;
  Vector<double> slope;
  double constant;

  Matrix<double> moved(const Input<double>& x) const {
    check_equal("columns of x", x.cols(), "dimension of the reparametrisation", shift.size());
    Matrix<double> rows(x.rows(), x.cols());
    x.load(0, 1, rows);
    rows.rowwise() -= shift.transpose();
    return rows;
  }
  Matrix<double> transformed(const Input<double>& x) const {
    Matrix<double> rows(x.rows(), x.cols());
    multiply_transposed<double>(moved(x), linear, rows);
    return rows;
  }
  Vector<double> log_factors(const Input<double>& x) const { return (moved(x) * slope).array() + constant; }
};

}  // namespace detail

/// Queries and keys moved and mixed,
///
///     q' = A_q (q - a),   k' = A_k (k - b),   A_q^T A_k = I
///     q . k = q' . k' + a . (k - b) + b . q
///
/// exactly, whatever a, b, A_q and A_k are. Of exp(scale q . k) the last term is a factor of the whole row,
/// which leaves weights alone and multiplies the normaliser; the one before is a log-weight a key. What
/// changes is how well q' and k' can be approximated: random features fail by |q' + k'|, Taylor features by
/// |q' . k'|. Reparametrised<Map> puts one in front of a feature map; reparametrisation/calibration.hpp fits
/// them to data.
///
/// In the caller's units: q and k as they come, before any scale. Made by shift(), diagonal() and linear()
/// and composed by then(), which stays in the family. Immutable; copies share its storage.
class Reparametrisation {
 public:
  /// q' = q - a, k' = k - b, (d) each
  /// @throws std::invalid_argument  if a and b are empty, differ in size, or are not finite
  static Reparametrisation shift(const Vector<double>& a, const Vector<double>& b) {
    detail::check_equal("size of b", b.size(), "size of a", a.size());
    const auto eye = Matrix<double>::Identity(a.size(), a.size());
    return {eye, eye, a, b};
  }

  /// q'_l = psi_l q_l, k'_l = k_l / psi_l
  /// @throws std::invalid_argument  if psi (d) is empty, or if a psi_l is 0 or not finite
  static Reparametrisation diagonal(const Vector<double>& psi) {
    for (Index l = 0; l < psi.size(); ++l) {
      if (psi(l) != 0 && std::isfinite(psi(l))) continue;
      detail::fail_argument("psi(" + std::to_string(l) + "): got " + std::to_string(psi(l)) +
                            ", expected a finite number other than 0");
    }
    const Vector<double> zero = Vector<double>::Zero(psi.size());
    return {psi.asDiagonal().toDenseMatrix(), psi.cwiseInverse().asDiagonal().toDenseMatrix(), zero, zero};
  }

  /// q' = M q, k' = M^-T k
  /// @throws std::invalid_argument  if M (d, d) is empty, not square, not finite or singular to rounding
  template <class Derived>
  static Reparametrisation linear(const Eigen::MatrixBase<Derived>& m) {
    detail::check_equal("columns of M", m.cols(), "rows of M", m.rows());
    detail::check_at_least("rows of M", m.rows(), 1);
    const Eigen::FullPivLU<Eigen::MatrixXd> lu(m.template cast<double>());
    if (!lu.isInvertible()) detail::fail_argument("M: singular or not finite, expected an invertible matrix");
    const Vector<double> zero = Vector<double>::Zero(m.rows());
    return {m.template cast<double>(), lu.inverse().transpose(), zero, zero};
  }

  /// First this, then `next`, which acts on q' and k': shifts a + A_k^T a' and b + A_q^T b'.
  /// @throws std::invalid_argument  if they differ in dimension
  Reparametrisation then(const Reparametrisation& next) const {
    detail::check_equal("dimension of the next reparametrisation", next.dimension(), "dimension of this one",
                        dimension());
    return {next.query_side().linear * query_side().linear, next.key_side().linear * key_side().linear,
            query_side().shift + key_side().linear.transpose() * next.query_side().shift,
            key_side().shift + query_side().linear.transpose() * next.key_side().shift};
  }

  Index dimension() const { return query_side().shift.size(); }

  /// q', (n_q, d)
  Matrix<double> queries(const Input<double>& q) const { return query_side().transformed(q); }
  /// k', (n_k, d)
  Matrix<double> keys(const Input<double>& k) const { return key_side().transformed(k); }

  /// scale a . (k_j - b), (n_k): the log-weights that go with the keys.
  Vector<double> key_log_weights(const Input<double>& k, double scale) const {
    return scale * key_side().log_factors(k);
  }
  /// scale b . q_i, (n_q): what the log-normaliser over q', k' and their log-weights lacks.
  Vector<double> query_log_factors(const Input<double>& q, double scale) const {
    return scale * query_side().log_factors(q);
  }

  const detail::AffineSide& query_side() const { return sides_->query; }
  const detail::AffineSide& key_side() const { return sides_->key; }

 private:
  struct Sides {
    detail::AffineSide query;
    detail::AffineSide key;
  };

  // b . q = b . (q - a) + a . b: the side's own small numbers, as a . (k - b) is.
  Reparametrisation(Matrix<double> a_q, Matrix<double> a_k, const Vector<double>& a,
                    const Vector<double>& b) {
    detail::check_at_least("dimension of the reparametrisation", a.size(), 1);
    if (!(a_q.allFinite() && a_k.allFinite() && a.allFinite() && b.allFinite())) {
      detail::fail_argument("reparametrisation: not finite");
    }
    sides_ =
        std::make_shared<const Sides>(Sides{{std::move(a_q), a, b, a.dot(b)}, {std::move(a_k), b, a, 0}});
  }

  std::shared_ptr<const Sides> sides_;
};

}  // namespace phiattn
