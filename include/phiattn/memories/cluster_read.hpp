#pragma once

// How queries read clusters.

#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/token_store.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/memories/cluster_store.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

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
    fail_argument("freezing: got " + number(options.freezing) + ", expected a number of at least 0");
  }
  return options;
}

/// One block of queries x (n, d). Token j of the block, once it is in, leaves its cluster of[j] as row j of `after` says:
/// the row beside token t sees each cluster as the last of the tokens <= t left it, or as it was before.
template <class S>
class ClusterRead {
 public:
  /// @param before   the summaries before the block
  /// @param buckets  all tokens, those of the block included
  ClusterRead(const ClusterSummaries<S>& before, const std::vector<TokenStore<S>>& buckets,
              const ClusterOptions& options)
      : before_(before), buckets_(buckets), options_(options), clusters_(before.clusters()) {}

  /// The block's own tokens, m of them: one for each `heads` rows.
  void see_tokens(Index m, Index heads, const Index* of, const ClusterSummaries<S>& after) {
    tokens_ = m;
    heads_ = heads;
    of_ = of;
    after_ = after;
  }

  void run(Rows<const S> x, const RowSums<S>& out) const {
    Workspace::Frame frame;
    const Index n = x.rows, all = clusters_ + tokens_, top = (std::min)(options_.top, clusters_);
    const Products products = multiply_summaries(frame, x);
    Row row{frame.numbers<S>(clusters_), frame.numbers<Index>(clusters_), frame.numbers<Index>(clusters_),
            frame.numbers<Index>(clusters_), 0};
    std::fill_n(row.coming, clusters_, Index{0});
    for (Index j = 0; j < tokens_; ++j) ++row.coming[of_[j]];
    for (Index c = 0; c < clusters_; ++c) row.current[c] = c;

    // Which rows read a cluster, and how many of its tokens.
    auto* const readers = frame.numbers<Reader>(clusters_ * n);
    auto* const counts = frame.numbers<Index>(clusters_);
    std::fill_n(counts, clusters_, Index{0});
    const Rows<S> weights = frame.rows<S>(n, all);
    weights.eigen().setZero();
    out.set_nothing();
    bool any_rest = false;
    for (Index t = 0; t < n; ++t) {
      if (const Index token = t / heads_; t % heads_ == 0 && token < tokens_) {
        row.current[of_[token]] = clusters_ + token;
        --row.coming[of_[token]];
      }
      rank(t, products, top, row);
      for (Index p = 0; p < (std::min)(top, row.ranked_count); ++p) {
        const Index c = row.ranked[p];
        readers[c * n + counts[c]++] = {t, buckets_[at(c)].size() - row.coming[c]};
      }
      any_rest |= sum_rest(t, top, row, weights.row(t), out);
    }
    if (any_rest) {
      multiply<S>(weights.left(clusters_), before_.value_means, out.sums);
      if (tokens_ > 0) {
        multiply_add<S>({weights.data + clusters_, n, tokens_, weights.stride}, after_.value_means, out.sums);
      }
    }
    for (Index c = 0; c < clusters_; ++c) read_bucket(x, buckets_[at(c)], readers + c * n, counts[c], out);
  }

 private:
  /// A query that reads the first `visible` tokens of a bucket.
  struct Reader {
    Index row, visible;
  };

  /// Of the queries with every summary that a row may see, those before the block and those after its tokens.
  struct Products {
    Rows<S> means, spreads;  // (n, clusters + tokens): x . mu, and (x / length)' D (x / length)
    S *lengths, *log_masses, *frozen;
  };

  /// What the row at hand sees of each cluster.
  struct Row {
    S* estimates;    // of its log-normaliser
    Index* current;  // its summary
    Index* coming;   // tokens that the row does not see yet
    Index* ranked;   // the clusters that have any, the best first
    Index ranked_count;
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  Products multiply_summaries(Workspace::Frame& frame, Rows<const S> x) const {
    const Index n = x.rows, all = clusters_ + tokens_;
    const Products products{frame.rows<S>(n, all), frame.rows<S>(n, all), frame.numbers<S>(n),
                            frame.numbers<S>(all), frame.numbers<S>(all)};
    Workspace::Frame own;
    const Rows<S> squares = own.rows<S>(n, x.cols);
    for (Index t = 0; t < n; ++t) {
      const Eigen::Map<const RowVector<S>> row(x.row(t), x.cols);
      const S length = largest(row.cwiseAbs());
      products.lengths[t] = length == 0 ? S(1) : length;
      squares.eigen().row(t) = (row / products.lengths[t]).cwiseAbs2();
    }
    const auto take = [&](const ClusterSummaries<S>& summaries, Index first, Index count) {
      const auto part = [&](const Rows<S>& rows) {
        return Rows<S>(rows.data + first, n, count, rows.stride);
      };
      multiply_transposed<S>(x, summaries.means.top(count), part(products.means));
      multiply_transposed<S>(squares, summaries.variances.top(count), part(products.spreads));
      std::copy_n(summaries.log_masses, count, products.log_masses + first);
      for (Index c = 0; c < count; ++c) {
        products.frozen[first + c] =
            static_cast<S>(options_.freezing * std::sqrt(2 * (std::max)(summaries.counts[c].log(), 0.0)));
      }
    };
    take(before_, 0, clusters_);
    if (tokens_ > 0) take(after_, clusters_, tokens_);
    return products;
  }

  /// Estimates the log-normaliser of every cluster that row t sees; the `top` largest come first.
  void rank(Index t, const Products& products, Index top, Row& row) const {
    row.ranked_count = 0;
    for (Index c = 0; c < clusters_; ++c) {
      const Index i = row.current[c];
      if (products.log_masses[i] == -std::numeric_limits<S>::infinity()) continue;
      const S frozen = products.frozen[i];
      const S sigma = products.lengths[t] * std::sqrt((std::max)(products.spreads(t, i), S(0)));
      const S energy = sigma > frozen ? frozen * (sigma - frozen / 2) : sigma * sigma / 2;
      const S estimate = products.log_masses[i] + products.means(t, i) + energy;
      // What is not finite is read exactly.
      row.estimates[c] = std::isnan(estimate) ? std::numeric_limits<S>::infinity() : estimate;
      row.ranked[row.ranked_count++] = c;
    }
    if (top >= row.ranked_count) return;
    std::nth_element(row.ranked, row.ranked + top, row.ranked + row.ranked_count, [&row](Index a, Index b) {
      return row.estimates[a] != row.estimates[b] ? row.estimates[a] > row.estimates[b] : a < b;
    });
  }

  /// Weights of row t on the summaries of the clusters that it does not read; whether there are any.
  bool sum_rest(Index t, Index top, const Row& row, S* weights, const RowSums<S>& out) const {
    if (top >= row.ranked_count) return false;
    S highest = kNothing<S>;
    for (Index p = top; p < row.ranked_count; ++p)
      highest = (std::max)(highest, row.estimates[row.ranked[p]]);
    S sum = 0;
    for (Index p = top; p < row.ranked_count; ++p) {
      const Index c = row.ranked[p];
      sum += weights[row.current[c]] = flushed_exp(row.estimates[c] - highest);
    }
    out.normaliser[t] = sum;
    out.log_scale[t] = highest;
    return true;
  }

  static void read_bucket(Rows<const S> x, const TokenStore<S>& bucket, const Reader* readers, Index n,
                          const RowSums<S>& out) {
    if (n == 0) return;
    Workspace::Frame frame;
    const Index m = readers[n - 1].visible;  // the last sees most
    const Rows<S> queries = frame.rows<S>(n, x.cols), scores = frame.rows<S>(n, m);
    for (Index p = 0; p < n; ++p) std::copy_n(x.row(readers[p].row), x.cols, queries.row(p));
    multiply_transposed<S>(queries, bucket.keys().top(m), scores);
    const auto part = RowSums<S>::of(frame, n, out.sums.cols);
    for (Index p = 0; p < n; ++p) {
      Eigen::Map<RowVector<S>> row(scores.row(p), m);
      const Index visible = readers[p].visible;
      row.tail(m - visible).setZero();
      auto seen = row.head(visible);
      seen += Eigen::Map<const RowVector<S>>(bucket.log_weights(), visible);
      const S highest = largest(seen);
      exp_shifted(row.head(visible), highest);
      part.normaliser[p] = seen.sum();
      part.log_scale[p] = highest;
    }
    multiply<S>(scores, bucket.values().top(m), part.sums);
    for (Index p = 0; p < n; ++p) combine(out.middle(readers[p].row, 1), part.middle(p, 1));
  }

  const ClusterSummaries<S> before_;
  const std::vector<TokenStore<S>>& buckets_;
  const ClusterOptions& options_;
  Index clusters_;
  Index tokens_ = 0;
  Index heads_ = 1;
  const Index* of_ = nullptr;
  ClusterSummaries<S> after_{};
};

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI
