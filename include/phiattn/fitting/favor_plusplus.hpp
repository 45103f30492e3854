#pragma once

// FAVOR++ for given data.

#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/fitting/calibration_data.hpp>
#include <phiattn/projection/favor_plusplus.hpp>
#include <phiattn/similarity.hpp>

#include <optional>
#include <type_traits>

namespace phiattn::inline PHIATTN_ABI {

/// The A of favor_plusplus() for given data: phi is the mean of |q_i + k_j|^2 over all pairs. No pair is formed:
/// phi = mean |q|^2 + mean |k|^2 + 2 mean q . mean k.
///
/// Constants fitted to data carry it: for causal use, take other data than the sequence itself, or its future
/// leaks.
/// @param q, k   (n_q, d) and (n_k, d)
/// @param scale  that of the attention to come; default 1/sqrt(d)
/// @throws std::invalid_argument  if q or k is empty, if they differ in d, or on a scale that is out of range
/// Cost: O((n_q + n_k) d).
template <detail::ComputeScalar S = double>
double favor_plusplus_parameter(const std::type_identity_t<Input<S>>& q,
                                const std::type_identity_t<Input<S>>& k,
                                std::optional<double> scale = std::nullopt) {
  const detail::CalibrationData<S> data(q, k, scale.value_or(inverse_sqrt_scale(q.cols())));
  const S phi = data.q.rowwise().squaredNorm().mean() + data.k.rowwise().squaredNorm().mean() +
                2 * data.q.colwise().mean().dot(data.k.colwise().mean());
  return favor_plusplus_parameter(static_cast<double>(phi), q.cols());
}

}  // namespace phiattn::inline PHIATTN_ABI
