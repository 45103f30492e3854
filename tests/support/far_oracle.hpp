// Far memories by their definitions: two passes over all keys in long double, nothing streamed, nothing merged.
#pragma once

#include "support/oracle.hpp"

#include <functional>
#include <vector>

namespace oracle {

using RealRow = Eigen::Matrix<Real, 1, Eigen::Dynamic>;

/// q'_l = psi_l (q_l - a_l), k'_l = (k_l - b_l) / psi_l
struct Frame {
  RealRow psi, query_shift, key_shift;

  static Frame identity(Index d) { return {RealRow::Ones(d), RealRow::Zero(d), RealRow::Zero(d)}; }
};

/// Keys of a frame at one scale (times sqrt(scale) on each side), with their values and log-weights; `counts` are the
/// log-weights without the frame's share.
struct FarKeys {
  Matrix y, v;
  std::vector<Real> log_weights, counts;

  Index size() const { return y.rows(); }
  FarKeys only(const std::vector<Index>& rows) const;
};

/// Errors of a far memory's arithmetic are a few eps times `condition`, relative to 1 in the log-normaliser and to the
/// largest value in the output.
struct FarResult {
  Real log_normaliser = -kInfinity;
  RealRow out;
  Real condition = 1;
};

FarResult join(const std::vector<FarResult>& parts, Index dv);

/// What a far memory makes of the query x and the keys it holds, both times sqrt(scale).
using FarModel = std::function<FarResult(const RealRow& x, const FarKeys& keys, Real root_scale)>;

/// ln Z + x . mu + tau sigma^2 - tau^2 sigma^2 / 2 and nu + tau K x
FarModel closure(Real freezing, bool diagonal = false);

/// The keys of each centre, the nearest one's.
std::vector<FarKeys> grouped(const FarKeys& keys, const Matrix& centres);

/// A closure for the keys of each centre, the nearest one's.
FarModel mixture(const Matrix& centres, Real freezing);

/// The `top` clusters of the largest estimates exactly, of the others mass, mean and diagonal variance.
FarModel clusters(const Matrix& centres, Index top, Real freezing);

}  // namespace oracle
