#include "support/far_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace oracle {

FarKeys FarKeys::only(const std::vector<Index>& rows) const {
  FarKeys part{y(rows, Eigen::all), v(rows, Eigen::all), {}, {}};
  for (const Index j : rows) {
    part.log_weights.push_back(log_weights[static_cast<std::size_t>(j)]);
    part.counts.push_back(counts[static_cast<std::size_t>(j)]);
  }
  return part;
}

FarResult join(const std::vector<FarResult>& parts, Index dv) {
  FarResult whole{-kInfinity, RealRow::Zero(dv), 1};
  std::vector<Real> logs;
  for (const FarResult& part : parts) logs.push_back(part.log_normaliser);
  whole.log_normaliser = log_sum_exp(logs);
  if (whole.log_normaliser == -kInfinity) return whole;
  for (const FarResult& part : parts) {
    if (part.log_normaliser == -kInfinity) continue;
    whole.out += std::exp(part.log_normaliser - whole.log_normaliser) * part.out;
    whole.condition = std::max(whole.condition, part.condition);
  }
  return whole;
}

namespace {

/// Moments of keys along x: normaliser, mean score and value, variance of scores, covariance of values with scores.
struct Moments {
  Real log_mass, mean, variance, log_count, condition;
  RealRow value, covariance;
};

Moments moments(const RealRow& x, const FarKeys& keys, bool diagonal) {
  Moments m{log_sum_exp(keys.log_weights), 0, 0, log_sum_exp(keys.counts), 1, RealRow::Zero(keys.v.cols()),
            RealRow::Zero(keys.v.cols())};
  RealRow mean = RealRow::Zero(x.size());
  std::vector<Real> p;
  for (const Real w : keys.log_weights) p.push_back(std::exp(w - m.log_mass));
  for (Index j = 0; j < keys.size(); ++j) {
    mean += p[static_cast<std::size_t>(j)] * keys.y.row(j);
    m.value += p[static_cast<std::size_t>(j)] * keys.v.row(j);
  }
  m.mean = x.dot(mean);
  Real bound = std::abs(m.log_mass) + x.norm() * mean.norm();
  Real spread = 0;
  for (Index j = 0; j < keys.size(); ++j) {
    const Real weight = p[static_cast<std::size_t>(j)];
    if (weight == 0) continue;
    const RealRow deviation = keys.y.row(j) - mean;
    m.variance +=
        weight * (diagonal ? x.cwiseProduct(deviation).squaredNorm() : std::pow(x.dot(deviation), Real(2)));
    m.covariance += weight * x.dot(deviation) * (keys.v.row(j) - m.value);
    spread = std::max(spread, x.norm() * deviation.norm());
    bound = std::max(
        bound, x.norm() * keys.y.row(j).norm() + std::abs(keys.log_weights[static_cast<std::size_t>(j)]));
  }
  // Scores come with errors of eps |x| |y|, their variance with such of eps |x|^2 |y - mu|^2.
  m.condition = (4 + std::sqrt(static_cast<Real>(x.size() + keys.size()))) * (1 + bound + spread * spread);
  return m;
}

/// tau = min(1, c sqrt(2 ln N) / sigma)
Real temper(const Moments& m, Real freezing) {
  const Real sigma = std::sqrt(m.variance);
  const Real frozen = freezing * std::sqrt(2 * std::max(m.log_count, Real(0)));
  return sigma > frozen ? frozen / sigma : Real(1);
}

}  // namespace

std::vector<FarKeys> grouped(const FarKeys& keys, const Matrix& centres) {
  std::vector<std::vector<Index>> rows(static_cast<std::size_t>(centres.rows()));
  for (Index j = 0; j < keys.size(); ++j) {
    Index nearest = 0;
    (centres.rowwise() - keys.y.row(j)).rowwise().squaredNorm().minCoeff(&nearest);
    rows[static_cast<std::size_t>(nearest)].push_back(j);
  }
  std::vector<FarKeys> groups;
  for (const auto& group : rows) groups.push_back(keys.only(group));
  return groups;
}

FarModel closure(Real freezing, bool diagonal) {
  return [=](const RealRow& x, const FarKeys& keys, Real) -> FarResult {
    const auto m = moments(x, keys, diagonal);
    if (m.log_mass == -kInfinity) return {-kInfinity, RealRow::Zero(keys.v.cols()), 1};
    const Real tau = temper(m, freezing);
    return {m.log_mass + m.mean + tau * m.variance - tau * tau * m.variance / 2, m.value + tau * m.covariance,
            m.condition};
  };
}

FarModel mixture(const Matrix& centres, Real freezing) {
  return [=](const RealRow& x, const FarKeys& keys, Real root_scale) {
    std::vector<FarResult> parts;
    for (const FarKeys& group : grouped(keys, root_scale * centres))
      parts.push_back(closure(freezing)(x, group, root_scale));
    return join(parts, keys.v.cols());
  };
}

FarModel clusters(const Matrix& centres, Index top, Real freezing) {
  return [=](const RealRow& x, const FarKeys& keys, Real root_scale) {
    std::vector<std::pair<Real, FarKeys>> ranked;
    std::vector<FarResult> parts;
    for (const FarKeys& group : grouped(keys, root_scale * centres)) {
      const Real estimate = closure(freezing, true)(x, group, root_scale).log_normaliser;
      if (estimate != -kInfinity) ranked.emplace_back(estimate, group);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t r = 0; r < ranked.size(); ++r) {
      const auto& [estimate, group] = ranked[r];
      const auto m = moments(x, group, true);
      if (static_cast<Index>(r) >= top) {
        parts.push_back({estimate, m.value, m.condition});
        continue;
      }
      for (Index j = 0; j < group.size(); ++j) {
        parts.push_back({group.log_weights[static_cast<std::size_t>(j)] + x.dot(group.y.row(j)),
                         group.v.row(j), m.condition});
      }
    }
    return join(parts, keys.v.cols());
  };
}

}  // namespace oracle
