#pragma once

// What a cluster memory keeps: all tokens, by cluster, and a summary of each. Next: memories/cluster_memory.hpp.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/memories/closure_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace phiattn::detail {

/// Summaries of clusters, a row each: mass n = sum w as its logarithm, mu = sum w y / n, nu = sum w v / n, the diagonal
/// of sum w (y - mu)(y - mu)' / n, and the number of tokens.
template <class S>
struct ClusterSummaries {
  Matrix<S> means, variances, value_means;
  Vector<S> log_masses;
  std::vector<LogCount> counts;

  void resize(Index clusters, Index d, Index dv) {
    if (means.rows() >= clusters && means.cols() == d && value_means.cols() == dv) return;
    means.setZero(clusters, d);
    variances.setZero(clusters, d);
    value_means.setZero(clusters, dv);
    log_masses.setConstant(clusters, kNothing<S>);
    counts.resize(static_cast<std::size_t>(clusters));
  }

  LogCount& count(Index c) { return counts[static_cast<std::size_t>(c)]; }
  const LogCount& count(Index c) const { return counts[static_cast<std::size_t>(c)]; }

  void add(Index c, const ClosureTokens<S>& tokens, Index j) {
    count(c).add(static_cast<double>(tokens.log_counts(j)));
    const S share = raise(c, tokens.log_weights(j));
    auto variance = variances.row(c);
    variance = (1 - share) * (variance + share * (tokens.k.row(j) - means.row(c)).cwiseAbs2());
    means.row(c) += share * (tokens.k.row(j) - means.row(c));
    value_means.row(c) += share * (tokens.v.row(j) - value_means.row(c));
  }

  /// The union with a cluster of others (Chan, Golub & LeVeque 1979).
  void merge(Index c, const ClusterSummaries& other) {
    count(c).merge(other.count(c));
    if (other.log_masses(c) == kNothing<S>) return;
    const S share = raise(c, other.log_masses(c));
    auto variance = variances.row(c);
    variance = (1 - share) * (variance + share * (other.means.row(c) - means.row(c)).cwiseAbs2()) +
               share * other.variances.row(c);
    means.row(c) += share * (other.means.row(c) - means.row(c));
    value_means.row(c) += share * (other.value_means.row(c) - value_means.row(c));
  }

  void copy(Index to, Index from, const ClusterSummaries& other) {
    means.row(to) = other.means.row(from);
    variances.row(to) = other.variances.row(from);
    value_means.row(to) = other.value_means.row(from);
    log_masses(to) = other.log_masses(from);
    count(to) = other.count(from);
  }

 private:
  /// Takes in a mass; its share of the new one.
  S raise(Index c, S log_mass) {
    if (log_masses(c) == kNothing<S>) {
      log_masses(c) = log_mass;
      means.row(c).setZero();  // with share 1 whatever stood here must not matter
      return 1;
    }
    const S largest = std::max(log_masses(c), log_mass);
    const S sum = largest + std::log(std::exp(log_masses(c) - largest) + std::exp(log_mass - largest));
    log_masses(c) = sum;
    return std::exp(log_mass - sum);
  }
};

/// The tokens of one cluster, in the order they came; grows by doubling.
template <class S>
class ClusterBucket {
 public:
  Index size() const { return size_; }
  auto keys(Index n) const { return k_.topRows(n); }
  auto values(Index n) const { return v_.topRows(n); }
  auto log_weights(Index n) const { return log_weights_.head(n); }

  void push(const ClosureTokens<S>& tokens, Index j) {
    make_room(1, tokens.k.cols(), tokens.v.cols());
    k_.row(size_) = tokens.k.row(j);
    v_.row(size_) = tokens.v.row(j);
    log_weights_(size_) = tokens.log_weights(j);
    ++size_;
  }

  void append(const ClusterBucket& other) {
    const Index n = other.size_;
    if (n == 0) return;
    make_room(n, other.k_.cols(), other.v_.cols());
    k_.middleRows(size_, n) = other.keys(n);
    v_.middleRows(size_, n) = other.values(n);
    log_weights_.segment(size_, n) = other.log_weights(n);
    size_ += n;
  }

 private:
  void make_room(Index n, Index d, Index dv) {
    if (size_ + n <= log_weights_.size()) return;
    const Index capacity = std::max(size_ + n, 2 * log_weights_.size());
    k_.conservativeResize(capacity, d);
    v_.conservativeResize(capacity, dv);
    log_weights_.conservativeResize(capacity);
  }

  Matrix<S> k_, v_;
  Vector<S> log_weights_;
  Index size_ = 0;
};

}  // namespace phiattn::detail
