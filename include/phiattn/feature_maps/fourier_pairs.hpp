#pragma once

// Random features of any similarity that has a Fourier transform.

#include <phiattn/core/check.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/projection/projection.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// A similarity as a mean over m' pairs of frequencies (https://kexue.fm/archives/7921):
///
///     sim(q, k) ~ Re 1/m' sum_r w_r e^{i omega_q,r . q} e^{i omega_k,r . k} / (beta(q) gamma(k))
///
/// The pairs are drawn from a density p, and w_r = F(omega_q,r, omega_k,r) / p(omega_q,r, omega_k,r), where F is the
/// Fourier transform of beta(q) gamma(k) sim(q, k), normalised so that its inverse has no factor:
///
///     F(omega_q, omega_k) = (2 pi)^{-2d} int beta(q) gamma(k) sim(q, k) e^{-i omega_q . q - i omega_k . k} dq dk
///
/// beta and gamma are there to make F exist. Where F is a density, it is p, and the weights are 1.
template <detail::ComputeScalar S>
struct FourierPairs {
  /// x -> ln beta(x) for one token
  using LogFactor = std::function<S(const Eigen::Ref<const RowVector<S>>& x)>;

  Projection<S> query;                ///< (m', d), omega_q
  Projection<S> key;                  ///< (m', d), omega_k
  LogFactor log_beta;                 ///< of the query
  LogFactor log_gamma;                ///< of the key
  Vector<std::complex<S>> weights{};  ///< (m'), or of size 0 for all 1
};

/// The real features of FourierPairs, w_r = |w_r| e^{i theta_r}, cosines first:
///
///     phi_r(q)    = sqrt(|w_r| / m') [cos(omega_q,r . q + theta_r), -sin(omega_q,r . q + theta_r)] / beta(q)
///     varphi_r(k) = sqrt(|w_r| / m') [cos(omega_k,r . k),            sin(omega_k,r . k)] / gamma(k)
///
/// Unbiased. 1/beta and 1/gamma go to the rows' log-scales. The price of being general: two frequencies are drawn for
/// a similarity that may need but one, which inflates the variance, and nothing keeps a similarity positive.
/// @throws std::invalid_argument  if the shapes differ, or if a factor is missing
/// Cost: 2 n m' d flops, n m' cosines and n m' sines for n tokens.
template <detail::ComputeScalar S>
class FourierPairFeatures : public SignedFeatureMapBase<FourierPairFeatures<S>, S> {
 public:
  explicit FourierPairFeatures(FourierPairs<S> pairs)
      : parts_(std::make_shared<const Parts>(std::move(pairs))) {}

  Index dimension() const { return pairs().query.cols(); }
  Index feature_dimension() const { return 2 * pairs().query.rows(); }

  const FourierPairs<S>& pairs() const { return parts_->pairs; }

  void features(Side side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    const bool queries = side == Side::queries;
    const Projection<S>& omega = queries ? pairs().query : pairs().key;
    const auto& log_factor = queries ? pairs().log_beta : pairs().log_gamma;
    const S sign = queries ? S(-1) : S(1);
    auto cosines = block.values.leftCols(omega.rows());
    auto sines = block.values.rightCols(omega.rows());
    const auto amplitudes = parts_->amplitudes.array();
    omega.project(x, cosines);
    for (Index t = 0; t < x.rows(); ++t) {
      if (queries && parts_->phases.size() > 0) cosines.row(t) += parts_->phases;
      sines.row(t) = cosines.row(t).array().sin() * (sign * amplitudes);
      cosines.row(t) = cosines.row(t).array().cos() * amplitudes;
      block.log_scale(t) = -log_factor(x.row(t));
    }
  }

 private:
  struct Parts {
    explicit Parts(FourierPairs<S> given)
        : pairs(std::move(given)), amplitudes(RowVector<S>::Ones(pairs.query.rows())) {
      detail::check_equal("rows of the key frequencies", pairs.key.rows(), "rows of the query frequencies",
                          pairs.query.rows());
      detail::check_equal("columns of the key frequencies", pairs.key.cols(),
                          "columns of the query frequencies", pairs.query.cols());
      if (!pairs.log_beta || !pairs.log_gamma)
        detail::fail_argument("FourierPairs: log_beta or log_gamma is empty");
      if (pairs.weights.size() > 0) {
        detail::check_equal("weights of the pairs", pairs.weights.size(), "rows of the frequencies",
                            pairs.query.rows());
        amplitudes = pairs.weights.cwiseAbs().cwiseSqrt().transpose();
        phases = pairs.weights.unaryExpr([](const std::complex<S>& w) { return std::arg(w); }).transpose();
      }
      amplitudes /= std::sqrt(static_cast<S>(pairs.query.rows()));
    }

    FourierPairs<S> pairs;
    RowVector<S> amplitudes;
    RowVector<S> phases;  // of size 0 if all are 0
  };

  std::shared_ptr<const Parts> parts_;
};

/// The pairs of exp(q . k) with beta(x) = gamma(x) = exp(-lambda |x|^2):
///
///     beta(q) gamma(k) exp(q . k) = exp(-(q, k) A (q, k)^T / 2),   A = [2 lambda, -1; -1, 2 lambda] (x) I
///
/// is the characteristic function of N(0, A), so that F is a density: omega_q = sqrt(2 lambda) g and
/// omega_k = (-g + sqrt(4 lambda^2 - 1) h) / sqrt(2 lambda) with g, h ~ N(0, I). At lambda = 1/2, the least for which A
/// is not indefinite, omega_k = -omega_q, and these are the trigonometric features.
/// @param m       pairs      @param d  dimension of q and k
/// @param lambda  at least 1/2; the larger, the larger the variance
/// @throws std::invalid_argument  if m or d is less than 1, or lambda less than 1/2 or not finite
/// Cost: that of sample_projection() in 2 d dimensions, of which (g, h) is a row.
template <detail::ComputeScalar S>
FourierPairs<S> sample_exponential_pairs(Index m, Index d, double lambda, std::uint64_t seed = 0,
                                         Directions directions = Directions::orthogonal) {
  detail::check_at_least("columns of the frequencies (d)", d, 1);
  if (!(lambda >= 0.5) || !std::isfinite(lambda)) {
    detail::fail_argument("lambda of exponential pairs: got " + detail::number(lambda) +
                          ", expected a finite number of at least 1/2");
  }
  const Matrix<double> both =
      sample_projection<double>(m, 2 * d, {.directions = directions, .antithetic = false, .seed = seed})
          .matrix();
  const auto g = both.leftCols(d);
  const auto h = both.rightCols(d);
  const double root = std::sqrt(2 * lambda);
  const Matrix<double> query = root * g;
  const Matrix<double> key = (std::sqrt(4 * lambda * lambda - 1) * h - g) / root;
  const auto log_factor = [lambda](const Eigen::Ref<const RowVector<S>>& x) {
    return -static_cast<S>(lambda) * x.squaredNorm();
  };
  return {Projection<S>(query.template cast<S>()),
          Projection<S>(key.template cast<S>()),
          log_factor,
          log_factor,
          {}};
}

/// exp(q . k) by the general procedure: FourierPairFeatures of sample_exponential_pairs().
///
/// Relative variance for iid rows: 2 sinh^2(tau^2/2) / m', tau^2 = |q - k|^2 + (2 lambda - 1)(|q|^2 + |k|^2). That is more
/// than trigonometric features have, for every q and k, and more than as many positive features have unless
/// 4 q . k exceeds (2 lambda - 1)(|q|^2 + |k|^2), roughly. It shows what the procedure costs.
template <detail::ComputeScalar S>
class ExponentialPairFeatures : public FourierPairFeatures<S> {
 public:
  ExponentialPairFeatures(Index m, Index d, double lambda, std::uint64_t seed = 0,
                          Directions directions = Directions::orthogonal)
      : FourierPairFeatures<S>(sample_exponential_pairs<S>(m, d, lambda, seed, directions)) {}

  static double default_scale(Index d) { return inverse_sqrt_scale(d); }
};

}  // namespace phiattn::inline PHIATTN_ABI
