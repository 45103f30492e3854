#pragma once

// Frequencies drawn where the data needs them.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/fitting/calibration_data.hpp>
#include <phiattn/projection/projection.hpp>
#include <phiattn/similarity.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// How sample_importance_projection() draws its frequencies.
struct ImportanceOptions {
  std::optional<Index> centres = std::nullopt;  ///< besides the origin; default m/4
  double origin_share = 0.2;                    ///< of the frequencies, rounded up; in (0, 1]
  bool antithetic = true;                       ///< frequencies in pairs, mirrored at their centre
  std::uint64_t seed = 0;
  std::optional<double> scale = std::nullopt;  ///< that of the attention to come; default 1/sqrt(d)
};

namespace detail {

/// Row l <- q_i + k_j: i uniform (one in each of L equal parts of the queries), j ~ softmax_j(q_i . k_j).
template <class S>
Matrix<S> sample_centres(Index count, const CalibrationData<S>& data, const Philox& for_queries,
                         const Philox& for_keys) {
  Matrix<S> centres(count, data.q.cols());
  for (Index l = 0; l < count; ++l) {
    const auto index = static_cast<std::uint64_t>(l);
    const double part = (static_cast<double>(l) + for_queries.uniform(index)) / static_cast<double>(count);
    const auto row = static_cast<Index>(part * static_cast<double>(data.q.rows()));
    const auto query = data.q.row((std::min)(row, data.q.rows() - 1));  // rounding may take part to 1
    const Vector<S> scores = data.k * query.transpose();
    std::vector<double> cumulative(scores.begin(), scores.end());
    const double largest = scores.maxCoeff();
    double sum = 0;
    for (double& score : cumulative) score = sum += std::exp(score - largest);
    const auto drawn = std::lower_bound(cumulative.begin(), cumulative.end(), for_keys.uniform(index) * sum);
    centres.row(l) = query + data.k.row(std::min<Index>(drawn - cumulative.begin(), data.k.rows() - 1));
  }
  return centres;
}

}  // namespace detail

/// m random frequencies around centres taken from data, with the weights that make up for it.
///
/// The pair (q, k) is estimated best from omega ~ N(q + k, I), where the relative variance is 0. So centres
/// mu_l are sums q + k of queries and of keys they attend to, and the origin, so that no weight exceeds
/// 1/origin_share (Hesterberg 1995):
///
///     omega_r = mu_l(r) + g_r,   ln w_r = -ln sum_l (n_l / m) exp(omega_r . mu_l - |mu_l|^2 / 2)
///
/// g as sample_projection() draws it (orthogonal, chi), n_l frequencies around mu_l: importance sampling from
/// a mixture, with the balance heuristic (Veach and Guibas 1995). Given the centres it is unbiased for any
/// exp(q . k): what data they come from decides the variance alone. But they carry that data: for causal use,
/// take other data than the sequence itself, or its future leaks.
/// @param q, k  (n_q, d) and (n_k, d), queries and keys like those to come
/// @throws std::invalid_argument  if m < 1, if q or k is empty, if they differ in d, or on bad options
/// Cost: O(L n_k d + m L d) for L centres, beyond that of sample_projection().
template <detail::ComputeScalar S, detail::ComputeScalar Fitted = double>
Projection<S> sample_importance_projection(Index m, const std::type_identity_t<Input<Fitted>>& q,
                                           const std::type_identity_t<Input<Fitted>>& k,
                                           const ImportanceOptions& options = {}) {
  detail::check_at_least("rows of omega (m)", m, 1);
  detail::check_at_least("centres", options.centres.value_or(0), 0);
  if (!(options.origin_share > 0 && options.origin_share <= 1)) {
    detail::fail_argument("origin_share: got " + detail::number(options.origin_share) +
                          ", expected a number in (0, 1]");
  }
  const detail::CalibrationData<Fitted> data(q, k, options.scale.value_or(inverse_sqrt_scale(q.cols())));
  constexpr std::uint64_t kQueries = 2, kKeys = 3;  // streams; 0 and 1 are those of sample_projection()

  // Of the h rows that come with a negative or alone, the first are the origin's, equally many each centre's.
  const Index h = options.antithetic ? m - m / 2 : m;
  const auto at_origin = static_cast<Index>(std::ceil(options.origin_share * static_cast<double>(h)));
  const Index count = (std::min)(options.centres.value_or(m / 4), h - at_origin);
  const Matrix<Fitted> centres = detail::sample_centres<Fitted>(count, data, Philox(options.seed, kQueries),
                                                                Philox(options.seed, kKeys));
  const auto centre_of = [&](Index r) {  // -1: the origin
    const Index row = r % h - at_origin;
    return row < 0 || count == 0 ? -1 : row * count / (h - at_origin);
  };

  Matrix<Fitted> omega =
      sample_projection<Fitted>(m, q.cols(), {.antithetic = options.antithetic, .seed = options.seed})
          .matrix();
  Vector<Fitted> share = Vector<Fitted>::Zero(count + 1);  // n_l / m, the origin last
  for (Index r = 0; r < m; ++r) {
    const Index l = centre_of(r);
    share(l < 0 ? count : l) += 1 / static_cast<Fitted>(m);
    if (l >= 0) omega.row(r) += centres.row(l);
  }
  Vector<Fitted> log_weights(m);
  for (Index r = 0; r < m; ++r) {
    Vector<Fitted> log_density = Vector<Fitted>::Zero(count + 1);  // relative to N(0, I)
    log_density.head(count) = centres * omega.row(r).transpose() - centres.rowwise().squaredNorm() / 2;
    const Fitted largest = log_density.maxCoeff();
    log_weights(r) = -largest - std::log(share.dot((log_density.array() - largest).exp().matrix()));
  }
  return Projection<S>(omega.template cast<S>(), log_weights.template cast<S>());
}

}  // namespace phiattn::inline PHIATTN_ABI
