#pragma once

// How queries read clusters. Next: memories/cluster_memory.hpp.

#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/memories/cluster_store.hpp>
#include <phiattn/memories/token_rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace phiattn {

struct ClusterOptions {
  /// Clusters that a query reads exactly; at least 0.
  Index top = 8;

  /// As ClosureOptions::freezing, for the clusters that are not read.
  double freezing = 0.35;
};

namespace detail {

inline const ClusterOptions& checked(const ClusterOptions& options) {
  check_at_least("top", options.top, 0);
  if (!(options.freezing >= 0)) {
    fail_argument("freezing: got " + std::to_string(options.freezing) + ", expected a number of at least 0");
  }
  return options;
}

/// Token j of a block, once it is in, leaves its cluster of[j] as row j of the summaries says. So row t of the block
/// sees each cluster as it was then: as the last of the tokens <= t left it, or as it was before.
template <class S>
struct ClusterVersions {
  std::vector<Index> of;
  ClusterSummaries<S> summaries;
};

/// One block of queries, with its scratch.
template <class S>
class ClusterRead {
 public:
  ClusterVersions<S> versions;

  /// @param before   the summaries before the block
  /// @param buckets  all tokens, those of the block included
  void run(const ConstMatrixRef<S>& x, const ClusterSummaries<S>& before,
           const std::vector<ClusterBucket<S>>& buckets, const ClusterOptions& options,
           PartialRows<S> results) {
    load(x, before, options);
    results.set_nothing();
    for (auto& readers : readers_) readers.clear();
    const Index n = x.rows();
    const Index m = size(versions.of);
    const Index all = clusters_ + m;
    auto weights = shaped(weights_, n, all);
    const auto products = shaped(products_, n, all);
    const auto spreads = shaped(spreads_, n, all);
    bool any_rest = false;
    for (Index t = 0; t < n; ++t) {
      if (at(t) < versions.of.size()) {
        const Index c = versions.of[at(t)];
        current_[at(c)] = clusters_ + t;
        --coming_[at(c)];
      }
      rank(t, products.row(t), spreads.row(t), options.top);
      for (std::size_t p = 0; p < ranked_.size() && p < at(options.top); ++p) {
        const auto c = at(ranked_[p]);
        readers_[c].push_back({t, buckets[c].size() - coming_[c]});
      }
      any_rest |= sum_rest(t, options.top, weights.row(t), results);
    }
    if (any_rest) {
      multiply<S>(weights.leftCols(clusters_), before.value_means, results.out);
      if (m > 0) {
        multiply_add<S>(weights.rightCols(m), versions.summaries.value_means.topRows(m), results.out);
      }
    }
    for (std::size_t c = 0; c < buckets.size(); ++c) read_bucket(x, buckets[c], readers_[c], results);
  }

 private:
  /// A query that reads the first `visible` tokens of a bucket.
  struct Reader {
    Index row, visible;
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  template <class T>
  static Index size(const std::vector<T>& x) {
    return static_cast<Index>(x.size());
  }

  /// Products of the queries with every summary that a row may see.
  void load(const ConstMatrixRef<S>& x, const ClusterSummaries<S>& before, const ClusterOptions& options) {
    clusters_ = before.log_masses.size();
    const Index n = x.rows();
    const Index m = size(versions.of);
    const Index all = clusters_ + m;
    reserve(squares_, n, x.cols());
    reserve(lengths_, n, 1);
    for (Index t = 0; t < n; ++t) {
      const S length = largest(x.row(t).cwiseAbs());
      lengths_(t) = length == 0 ? S(1) : length;
      squares_.row(t) = (x.row(t) / lengths_(t)).cwiseAbs2();
    }
    auto products = shaped(products_, n, all);
    auto spreads = shaped(spreads_, n, all);
    reserve(log_masses_, all, 1);
    reserve(frozen_, all, 1);
    const auto take = [&](const ClusterSummaries<S>& summaries, Index first, Index count) {
      multiply_transposed<S>(x, summaries.means.topRows(count), products.middleCols(first, count));
      multiply_transposed<S>(squares_.topRows(n), summaries.variances.topRows(count),
                             spreads.middleCols(first, count));
      log_masses_.segment(first, count) = summaries.log_masses.head(count);
      for (Index c = 0; c < count; ++c) {
        frozen_(first + c) =
            static_cast<S>(options.freezing * std::sqrt(2 * std::max(summaries.count(c).log(), 0.0)));
      }
    };
    take(before, 0, clusters_);
    if (m > 0) take(versions.summaries, clusters_, m);

    readers_.resize(at(clusters_));
    estimates_.resize(at(clusters_));
    current_.resize(at(clusters_));
    coming_.assign(at(clusters_), 0);
    for (Index c = 0; c < clusters_; ++c) current_[at(c)] = c;
    for (const Index c : versions.of) ++coming_[at(c)];
  }

  /// Estimates the log-normaliser of every cluster that row t sees; the `top` largest come first.
  template <class Row>
  void rank(Index t, const Row& products, const Row& spreads, Index top) {
    ranked_.clear();
    for (Index c = 0; c < clusters_; ++c) {
      const Index i = current_[at(c)];
      if (log_masses_(i) == kNothing<S>) continue;
      const S sigma = lengths_(t) * std::sqrt(std::max(spreads(i), S(0)));
      const S energy = sigma > frozen_(i) ? frozen_(i) * (sigma - frozen_(i) / 2) : sigma * sigma / 2;
      const S estimate = log_masses_(i) + products(i) + energy;
      // What is not finite is read exactly.
      estimates_[at(c)] = std::isnan(estimate) ? std::numeric_limits<S>::infinity() : estimate;
      ranked_.push_back(c);
    }
    if (top >= size(ranked_)) return;
    std::nth_element(ranked_.begin(), ranked_.begin() + top, ranked_.end(), [this](Index a, Index b) {
      return estimates_[at(a)] != estimates_[at(b)] ? estimates_[at(a)] > estimates_[at(b)] : a < b;
    });
  }

  /// Weights of row t on the summaries of the clusters that it does not read; whether there are any.
  template <class Row>
  bool sum_rest(Index t, Index top, Row&& row, PartialRows<S>& results) {
    row.setZero();
    if (top >= size(ranked_)) return false;
    S highest = kNothing<S>;
    for (std::size_t p = at(top); p < ranked_.size(); ++p)
      highest = std::max(highest, estimates_[at(ranked_[p])]);
    S sum = 0;
    for (std::size_t p = at(top); p < ranked_.size(); ++p) {
      const auto c = at(ranked_[p]);
      row(current_[c]) = flushed_exp(estimates_[c] - highest);
      sum += row(current_[c]);
    }
    row /= sum;
    results.log_normaliser(t) = highest + std::log(sum);
    return true;
  }

  void read_bucket(const ConstMatrixRef<S>& x, const ClusterBucket<S>& bucket,
                   const std::vector<Reader>& readers, PartialRows<S>& results) {
    if (readers.empty()) return;
    const Index n = size(readers);
    const Index m = readers.back().visible;  // the last sees most
    reserve(queries_, n, x.cols());
    for (Index p = 0; p < n; ++p) queries_.row(p) = x.row(readers[at(p)].row);
    auto scores = shaped(scores_, n, m);
    multiply_transposed<S>(queries_.topRows(n), bucket.keys(m), scores);
    auto part = part_.results(n, results.out.cols());
    part.sign.setOnes();
    for (Index p = 0; p < n; ++p) {
      const Index visible = readers[at(p)].visible;
      scores.row(p).tail(m - visible).setZero();
      auto seen = scores.row(p).head(visible);
      seen += bucket.log_weights(visible).transpose();
      const S highest = largest(seen);
      exp_shifted(scores.row(p).head(visible), highest);
      const S sum = seen.sum();
      seen /= sum;
      part.log_normaliser(p) = highest + std::log(sum);
    }
    multiply<S>(scores, bucket.values(m), part.out);
    for (Index p = 0; p < n; ++p) combine_rows<S>(results.slice(readers[at(p)].row, 1), part.slice(p, 1));
  }

  Index clusters_ = 0;
  Matrix<S> squares_, queries_;
  Vector<S> products_, spreads_, weights_, scores_, lengths_, log_masses_, frozen_;
  std::vector<S> estimates_;
  std::vector<Index> current_;  // the summary of each cluster that the row at hand sees
  std::vector<Index> coming_;   // tokens of each cluster that it does not see yet
  std::vector<Index> ranked_;
  std::vector<std::vector<Reader>> readers_;
  BlockBuffers<S> part_;
};

}  // namespace detail
}  // namespace phiattn
