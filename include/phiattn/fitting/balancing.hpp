#pragma once

// Reparametrisations fitted to data.
//
// They aim at a small mean of |q'_i + k'_j|^2, which rules the variance of positive random features:
//
//     mean_ij |q'_i + k'_j|^2 = mean |q' - mean q'|^2 + mean |k' - mean k'|^2 + |mean q' + mean k'|^2
//
// None needs to know the scale. Weights stay exact whatever the data; only the gain depends on it. But fitted
// constants carry their data: for causal use, take other data than the sequence itself, or its future leaks.
// Centre first and balance what comes out: with c = centring(q, k),
//
//     c.then(full_balance(c.queries(q), c.keys(k)))

#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/symmetric_function.hpp>
#include <phiattn/fitting/calibration_data.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>

#include <limits>
#include <type_traits>

namespace phiattn::inline PHIATTN_ABI {

/// k' = k - mean k: the mean key adds the same to every score of a query. Keys need no log-weights.
/// @throws std::invalid_argument  if k (n_k, d) is empty
/// Cost: O(n_k d).
template <detail::ComputeScalar S = double>
ReparametrisationOf<S> key_centring(const std::type_identity_t<Input<S>>& k) {
  const Matrix<S> keys = detail::calibration_rows<S>("k", k);
  return ReparametrisationOf<S>::shift(Vector<S>::Zero(k.cols()), keys.colwise().mean());
}

/// q' = q - mean q, k' = k - mean k, with log-weights scale (mean q) . (k - mean k).
///
/// To positive random features only the sum of both shifts counts: k' = k - mean k - mean q does the same.
/// @throws std::invalid_argument  if q or k is empty, or if they differ in d
/// Cost: O((n_q + n_k) d).
template <detail::ComputeScalar S = double>
ReparametrisationOf<S> centring(const std::type_identity_t<Input<S>>& q,
                                const std::type_identity_t<Input<S>>& k) {
  const detail::CalibrationData<S> data(q, k);
  return ReparametrisationOf<S>::shift(data.q.colwise().mean(), data.k.colwise().mean());
}

/// q'_l = psi_l q_l, k'_l = k_l / psi_l,   psi_l = (mean k_l^2 / mean q_l^2)^(1/4)
///
/// the diagonal that minimises mean |q'|^2 + mean |k'|^2, after which both sides are of one size in each
/// coordinate. A coordinate in which either is all 0 keeps psi_l = 1.
/// @throws std::invalid_argument  if q or k is empty, or if they differ in d
/// Cost: O((n_q + n_k) d).
template <detail::ComputeScalar S = double>
ReparametrisationOf<S> diagonal_balance(const std::type_identity_t<Input<S>>& q,
                                        const std::type_identity_t<Input<S>>& k) {
  const detail::CalibrationData<S> data(q, k);
  const Vector<S> of_q = data.q.array().square().colwise().mean().transpose();
  const Vector<S> of_k = data.k.array().square().colwise().mean().transpose();
  const Vector<S> psi = (of_k.array() / of_q.array()).pow(S(0.25));
  return ReparametrisationOf<S>::diagonal((of_k.array() > 0 && of_q.array() > 0).select(psi, 1));
}

namespace detail {

/// X^power of a symmetric positive definite X.
template <class S>
Matrix<S> symmetric_power(const Matrix<S>& x, double power) {
  const auto raise = [power](Vector<double>& values) {
    // Rounding may leave an eigenvalue at or below 0.
    const double least = values.tail(1)(0) * std::numeric_limits<S>::epsilon();
    values = (values.array().max)(least).pow(power);
  };
  return symmetric_function<double>(x.template cast<double>(), raise).template cast<S>();
}

/// S = mean x x^T + ridge (tr / d) I; I if x is all 0.
template <class S>
Matrix<S> second_moment(const Matrix<S>& x, double ridge) {
  const auto eye = Matrix<S>::Identity(x.cols(), x.cols());
  const Matrix<S> moment = x.transpose() * x / static_cast<S>(x.rows());
  const S mean = moment.trace() / static_cast<S>(x.cols());
  return mean > 0 ? Matrix<S>(moment + static_cast<S>(ridge) * mean * eye) : Matrix<S>(eye);
}

}  // namespace detail

/// q' = M q, k' = M^-1 k,   M = X^(1/2),   X = S_q^(-1/2) (S_q^(1/2) S_k S_q^(1/2))^(1/2) S_q^(-1/2)
///
/// the geometric mean of S_k and S_q^-1 (X S_q X = S_k), which minimises mean |q'|^2 + mean |k'|^2 over all
/// matrices; both sides then have the same second moments.
/// @param ridge  each second moment S is mean x x^T + ridge (tr / d) I
/// @throws std::invalid_argument  if q or k is empty, if they differ in d, or on a ridge that is out of range
/// Cost: O((n_q + n_k) d^2 + d^3), and O(n d^2) in every call of attention.
template <detail::ComputeScalar S = double, class Q, class K>
ReparametrisationOf<S> full_balance(const Eigen::DenseBase<Q>& q, const Eigen::DenseBase<K>& k,
                                    double ridge = 1e-4) {
  const detail::CalibrationData<S> data(q, k);
  detail::checked_positive("ridge", ridge);
  const Matrix<S> s_q = detail::second_moment<S>(data.q, ridge);
  const Matrix<S> s_k = detail::second_moment<S>(data.k, ridge);
  const Matrix<S> root = detail::symmetric_power<S>(s_q, 0.5);
  const Matrix<S> inverse_root = detail::symmetric_power<S>(s_q, -0.5);
  const Matrix<S> x = inverse_root * detail::symmetric_power<S>(root * s_k * root, 0.5) * inverse_root;
  return ReparametrisationOf<S>::linear(detail::symmetric_power<S>(x, 0.5));
}

}  // namespace phiattn::inline PHIATTN_ABI
