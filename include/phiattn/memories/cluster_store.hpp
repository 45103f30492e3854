#pragma once

// What a cluster memory keeps: all tokens, by cluster, and a summary of each.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/closure_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Summaries of clusters, a row each: mass n = sum w as its logarithm, mu = sum w y / n, nu = sum w v / n, the diagonal
/// of sum w (y - mu)(y - mu)' / n, and the number of tokens. A view.
template <class S>
struct ClusterSummaries {
  Rows<S> means, variances, value_means;
  S* log_masses;
  LogCount* counts;

  static ClusterSummaries of(Workspace::Frame& frame, Index clusters, Index d, Index dv) {
    return {frame.rows<S>(clusters, d), frame.rows<S>(clusters, d), frame.rows<S>(clusters, dv),
            frame.numbers<S>(clusters), frame.numbers<LogCount>(clusters)};
  }

  Index clusters() const { return means.rows; }
  /// Whether it has any token; no mass that tokens can have says so.
  bool exists(Index c) const { return log_masses[c] != -std::numeric_limits<S>::infinity(); }

  void add(Index c, const ClosureTokens<S>& tokens, Index j) const {
    counts[c].add(static_cast<double>(tokens.log_counts[j]));
    const S share = raise(c, tokens.log_weights[j]);
    auto mean = row(means, c), variance = row(variances, c), value_mean = row(value_means, c);
    variance = (1 - share) * (variance + share * (tokens.key(j) - mean).cwiseAbs2());
    mean += share * (tokens.key(j) - mean);
    value_mean += share * (tokens.value(j) - value_mean);
  }

  /// The union with a cluster of others (Chan, Golub & LeVeque 1979).
  void merge(Index c, const ClusterSummaries& other) const {
    counts[c].merge(other.counts[c]);
    if (!other.exists(c)) return;
    const S share = raise(c, other.log_masses[c]);
    auto mean = row(means, c), variance = row(variances, c), value_mean = row(value_means, c);
    const auto other_mean = row(other.means, c);
    variance =
        (1 - share) * (variance + share * (other_mean - mean).cwiseAbs2()) + share * row(other.variances, c);
    mean += share * (other_mean - mean);
    value_mean += share * (row(other.value_means, c) - value_mean);
  }

  void copy(Index to, Index from, const ClusterSummaries& other) const {
    row(means, to) = row(other.means, from);
    row(variances, to) = row(other.variances, from);
    row(value_means, to) = row(other.value_means, from);
    log_masses[to] = other.log_masses[from];
    counts[to] = other.counts[from];
  }

 private:
  static Eigen::Map<RowVector<S>> row(const Rows<S>& rows, Index c) { return {rows.row(c), rows.cols}; }

  /// Takes in a mass; its share of the new one.
  S raise(Index c, S log_mass) const {
    if (!exists(c)) {
      log_masses[c] = log_mass;
      row(means, c).setZero();  // with share 1 whatever stood here must not matter
      return 1;
    }
    const S top = (std::max)(log_masses[c], log_mass);
    const S sum = top + std::log(std::exp(log_masses[c] - top) + std::exp(log_mass - top));
    log_masses[c] = sum;
    return std::exp(log_mass - sum);
  }
};

/// Where the summaries of a memory are kept.
template <class S>
class ClusterStore {
 public:
  ClusterStore(Index clusters, Index d, Index dv)
      : means_(Matrix<S>::Zero(clusters, d)),
        variances_(Matrix<S>::Zero(clusters, d)),
        value_means_(Matrix<S>::Zero(clusters, dv)),
        log_masses_(Vector<S>::Constant(clusters, -std::numeric_limits<S>::infinity())),
        counts_(static_cast<std::size_t>(clusters)) {}

  ClusterSummaries<S> summaries() {
    return {means_, variances_, value_means_, log_masses_.data(), counts_.data()};
  }
  /// Not to be written.
  ClusterSummaries<S> summaries() const { return const_cast<ClusterStore*>(this)->summaries(); }

 private:
  Matrix<S> means_, variances_, value_means_;
  Vector<S> log_masses_;
  std::vector<LogCount> counts_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
