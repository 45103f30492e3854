#pragma once

// Other queries and keys with the same attention.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>

#include <Eigen/LU>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// What is done to one side: x' = linear (x - shift), with the log-factor slope . (x - shift) + constant.
template <class S>
struct AffineSide {
  Matrix<S> linear;
  Vector<S> shift;
  Vector<S> slope;
  S constant;

  Matrix<S> moved(const Input<S>& x) const {
    check_equal("columns of x", x.cols(), "dimension of the reparametrisation", shift.size());
    Matrix<S> rows(x.rows(), x.cols());
    x.load(0, 1, rows);
    rows.rowwise() -= shift.transpose();
    return rows;
  }
  Matrix<S> transformed(const Input<S>& x) const {
    Matrix<S> rows(x.rows(), x.cols());
    multiply_transposed<S>(moved(x), linear, rows);
    return rows;
  }
  Vector<S> log_factors(const Input<S>& x) const { return (moved(x) * slope).array() + constant; }
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
/// |q' . k'|. Reparametrised<Map> puts one in front of a feature map; fitting/balancing.hpp fits them to
/// data.
///
/// In the caller's units: q and k as they come, before any scale. Made by shift(), diagonal() and linear()
/// and composed by then(), which stays in the family. Immutable; copies share its storage.
template <detail::ComputeScalar S>
class ReparametrisationOf {
 public:
  /// q' = q - a, k' = k - b, (d) each
  /// @throws std::invalid_argument  if a and b are empty, differ in size, or are not finite
  static ReparametrisationOf shift(const Vector<S>& a, const Vector<S>& b) {
    detail::check_equal("size of b", b.size(), "size of a", a.size());
    const auto eye = Matrix<S>::Identity(a.size(), a.size());
    return {eye, eye, a, b};
  }

  /// q'_l = psi_l q_l, k'_l = k_l / psi_l
  /// @throws std::invalid_argument  if psi (d) is empty, or if a psi_l is 0 or not finite
  static ReparametrisationOf diagonal(const Vector<S>& psi) {
    for (Index l = 0; l < psi.size(); ++l) {
      if (psi(l) != 0 && std::isfinite(psi(l))) continue;
      detail::fail_argument("psi(" + std::to_string(l) + "): got " + detail::number(psi(l)) +
                            ", expected a finite number other than 0");
    }
    const Vector<S> zero = Vector<S>::Zero(psi.size());
    return {psi.asDiagonal().toDenseMatrix(), psi.cwiseInverse().asDiagonal().toDenseMatrix(), zero, zero};
  }

  /// q' = M q, k' = M^-T k
  /// @throws std::invalid_argument  if M (d, d) is empty, not square, not finite or singular to rounding
  template <class Derived>
  static ReparametrisationOf linear(const Eigen::MatrixBase<Derived>& m) {
    detail::check_equal("columns of M", m.cols(), "rows of M", m.rows());
    detail::check_at_least("rows of M", m.rows(), 1);
    const Eigen::FullPivLU<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>> lu(m.template cast<S>());
    if (!lu.isInvertible()) detail::fail_argument("M: singular or not finite, expected an invertible matrix");
    const Vector<S> zero = Vector<S>::Zero(m.rows());
    return {m.template cast<S>(), lu.inverse().transpose(), zero, zero};
  }

  /// First this, then `next`, which acts on q' and k': shifts a + A_k^T a' and b + A_q^T b'.
  /// @throws std::invalid_argument  if they differ in dimension
  ReparametrisationOf then(const ReparametrisationOf& next) const {
    detail::check_equal("dimension of the next reparametrisation", next.dimension(), "dimension of this one",
                        dimension());
    return {next.query_side().linear * query_side().linear, next.key_side().linear * key_side().linear,
            query_side().shift + key_side().linear.transpose() * next.query_side().shift,
            key_side().shift + query_side().linear.transpose() * next.key_side().shift};
  }

  Index dimension() const { return query_side().shift.size(); }

  /// q', (n_q, d)
  Matrix<S> queries(const Input<S>& q) const { return query_side().transformed(q); }
  /// k', (n_k, d)
  Matrix<S> keys(const Input<S>& k) const { return key_side().transformed(k); }

  /// scale a . (k_j - b), (n_k): the log-weights that go with the keys.
  Vector<S> key_log_weights(const Input<S>& k, double scale) const {
    return static_cast<S>(scale) * key_side().log_factors(k);
  }
  /// scale b . q_i, (n_q): what the log-normaliser over q', k' and their log-weights lacks.
  Vector<S> query_log_factors(const Input<S>& q, double scale) const {
    return static_cast<S>(scale) * query_side().log_factors(q);
  }

  const detail::AffineSide<S>& query_side() const { return sides_->query; }
  const detail::AffineSide<S>& key_side() const { return sides_->key; }

 private:
  struct Sides {
    detail::AffineSide<S> query;
    detail::AffineSide<S> key;
  };

  // b . q = b . (q - a) + a . b: the side's own small numbers, as a . (k - b) is.
  ReparametrisationOf(Matrix<S> a_q, Matrix<S> a_k, const Vector<S>& a, const Vector<S>& b) {
    detail::check_at_least("dimension of the reparametrisation", a.size(), 1);
    if (!(a_q.allFinite() && a_k.allFinite() && a.allFinite() && b.allFinite())) {
      detail::fail_argument("reparametrisation: not finite");
    }
    sides_ =
        std::make_shared<const Sides>(Sides{{std::move(a_q), a, b, a.dot(b)}, {std::move(a_k), b, a, 0}});
  }

  std::shared_ptr<const Sides> sides_;
};

/// In double, whatever attention computes in.
using Reparametrisation = ReparametrisationOf<double>;

}  // namespace phiattn::inline PHIATTN_ABI

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI {
extern template class ReparametrisationOf<double>;
}  // namespace phiattn::inline PHIATTN_ABI
#endif
