#pragma once

// Any kernel through a few landmarks.

#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/core/symmetric_function.hpp>
#include <phiattn/feature_maps/feature_map_base.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

struct NystromOptions {
  double jitter = 1e-3;  ///< added to the eigenvalues of C; not negative
  std::optional<double> scale =
      std::nullopt;  ///< that of the attention to come; default: the kernel's own default
};

/// Nystrom features of a positive kernel, from its similarities with the landmarks L (m, d)   (Williams & Seeger
/// 2001; Chen et al. 2021, "Skyformer", is the Gaussian kernel):
///
///     phi(x) = a(x) (C + jitter I)^{-1/2},   a_i(x) = sim(x, L_i) / s_i,   C_ij = sim(L_i, L_j) / (s_i s_j)
///
/// with s_i = sqrt(sim(L_i, L_i)), 1 for the Gaussian kernel. phi(q) . phi(k) is then the similarity of the
/// projections of q and k on the span of the landmarks in the kernel's own space: exact for the landmarks themselves
/// (jitter 0), and never above sim(x, x) for x with itself.
///
/// Landmarks are given in the units of q and k, and multiplied by sqrt(scale) as those are: tell the scale if it is
/// not the kernel's default. It becomes the map's default; used at another, the landmarks are elsewhere, which is
/// legal.
///
/// The range of exp(L_i . L_j) is no harm: C has ones on its diagonal and no larger entry, and a row has the largest
/// logarithm of its a_i as log-scale: features are finite where logarithms are. Limit: a state has one log-scale, so
/// that a key is lost beside another whose log-scale is higher by some 87 (float) or 708 (double). Of the Gaussian
/// kernel these are keys far from every landmark; of exp(q . k) they are the short keys beside one of |k|^2/2 = 87.
/// Eigenvalues of C are clamped at 0, and dropped where with jitter they stay below m eps times the largest:
/// duplicate landmarks are legal.
///
/// Works where queries and keys are near landmarks, or the kernel matrix is of low rank: m must grow with the volume
/// that the tokens fill in units of the kernel's width. For exp(q . k) sample them from the queries and from the keys.
/// Fails elsewhere, and worse than uniform attention does: far tokens are extrapolated, weights turn negative (means
/// are shorter than what they are the means of, so that exp(q . k) is extrapolated from them), and a small jitter
/// enlarges the rounding of S by up to 1/jitter.
/// @param kernel     positive semidefinite
/// @param landmarks  (m, d); see segment_means() and sampled_rows()
/// @throws std::invalid_argument  if there are no landmarks, C is not finite, or an option is out of range
/// Cost: O(m^3) once; 2 n m (d + m) flops and n m exponentials for n tokens.
template <LogKernel K>
class NystromFeatures : public SignedFeatureMapBase<NystromFeatures<K>, typename K::Scalar> {
 public:
  using Scalar = typename K::Scalar;
  using S = Scalar;

  static constexpr bool kUniform = true;

  static_assert(
      !requires(const K& modified) { modified.rules(); },
      "phiattn: Nystrom features do not know where tokens stand: what with() adds to a kernel is lost");

  NystromFeatures(K kernel, const Input<double>& landmarks, const NystromOptions& options = {})
      : kernel_(std::move(kernel)), scale_(options.scale.value_or(kernel_.default_scale(landmarks.cols()))) {
    detail::check_at_least("rows of the landmarks", landmarks.rows(), 1);
    detail::check_at_least("columns of the landmarks", landmarks.cols(), 1);
    detail::checked_positive("scale", scale_);
    if (!(options.jitter >= 0) || !std::isfinite(options.jitter)) {
      detail::fail_argument("jitter of NystromFeatures: got " + detail::number(options.jitter) +
                            ", expected a finite number, not negative");
    }
    parts_ = std::make_shared<const Parts>(prepare(landmarks, options.jitter));
  }

  const K& kernel() const { return kernel_; }
  Index dimension() const { return parts_->landmarks.cols(); }
  Index feature_dimension() const { return parts_->landmarks.rows(); }
  double default_scale(Index) const { return scale_; }

  /// Some tokens at a time, so that their similarities stay in the cache.
  void features(Side, const ConstMatrixRef<S>& x, Index, FeatureBlock<S> block) const {
    const Index m = feature_dimension();
    const Index together = std::max<Index>(1, detail::kCacheScratch<S> / m);
    for (Index begin = 0; begin < x.rows(); begin += together) {
      const Index n = (std::min)(together, x.rows() - begin);
      detail::with_scratch<S>(n, m, [&](Eigen::Map<Matrix<S>> a) {
        kernel_similarity(x.middleRows(begin, n), parts_->landmarks, a);
        for (Index t = 0; t < n; ++t) {
          a.row(t) -= parts_->log_s;
          const S shift = (std::max)(detail::largest(a.row(t)), kNothing<S>);
          detail::exp_shifted(a.row(t), shift);
          block.log_scale(begin + t) = shift;
        }
        detail::multiply<S>(a, parts_->inverse_root, block.values.middleRows(begin, n));
      });
    }
  }

 private:
  struct Parts {
    Matrix<S> landmarks;     // times sqrt(scale)
    RowVector<S> log_s;      // ln s_i
    Matrix<S> inverse_root;  // (C + jitter I)^{-1/2}, symmetric
  };

  void kernel_similarity(const ConstMatrixRef<S>& x, const ConstMatrixRef<S>& landmarks,
                         MatrixRef<S> tile) const {
    Vector<S> unused;
    detail::fill_similarity<K>(kernel_, x, landmarks, tile, unused);
  }

  Parts prepare(const Input<double>& landmarks, double jitter) const {
    const Index m = landmarks.rows();
    Matrix<double> scaled(m, landmarks.cols());
    landmarks.load(0, std::sqrt(scale_), scaled);
    Parts parts{scaled.template cast<S>(), {}, {}};
    Matrix<S> log_similarity(m, m);
    kernel_similarity(parts.landmarks, parts.landmarks, log_similarity);
    parts.log_s = log_similarity.diagonal().transpose() / 2;

    const Matrix<double> log_c = log_similarity.template cast<double>();
    const RowVector<double> log_s = log_c.diagonal().transpose() / 2;
    const Matrix<double> c = ((log_c.rowwise() - log_s).colwise() - log_s.transpose()).array().exp();
    if (!c.allFinite()) {
      detail::fail_argument("landmarks: their similarities are not finite in units of those with themselves");
    }
    parts.inverse_root = inverse_root(c, jitter).template cast<S>();
    return parts;
  }

  /// (c + jitter I)^{-1/2} for symmetric c.
  static Matrix<double> inverse_root(const Matrix<double>& c, double jitter) {
    return detail::symmetric_function<double>(c, [&](Vector<double>& values) {
      values = values.cwiseMax(0).array() + jitter;
      const double least = static_cast<double>(c.rows()) * values.maxCoeff() *
                           static_cast<double>(std::numeric_limits<S>::epsilon());
      for (double& x : values) x = x > least ? 1 / std::sqrt(x) : 0;
    });
  }

  K kernel_;
  double scale_;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace phiattn::inline PHIATTN_ABI
