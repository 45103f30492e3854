#pragma once

// How queries read clusters.

#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/token_store.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/cluster_store.hpp>

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

  /// The block's own tokens, m of them, all finite if m > 1: one for each `heads` rows.
  void see_tokens(Index m, Index heads, const Index* of, const ClusterSummaries<S>& after) {
    tokens_ = m;
    heads_ = heads;
    of_ = of;
    after_ = after;
  }

  void run(Rows<const S> x, const RowSums<S>& out) const;

 private:
  /// Of the queries with every summary that a row may see, those before the block and those after its tokens.
  struct Products {
    Rows<S> means, spreads;  // (n, clusters + tokens): x . mu, and (x / length)' D (x / length)
    S *lengths, *log_masses, *frozen;
  };

  /// What the row at hand sees of each cluster.
  struct Row {
    S *log_masses, *frozen;  // of its summary
    Index* current;          // which summary that is
    Index* changed;          // the clusters whose summary is one after a token,
    Index changed_count;
    Index* coming;  // tokens that the row does not see yet
    Index* chosen;  // the clusters that it reads
    Index chosen_count;
    Index existing;  // that have any token
    S* ranking;      // scratch
  };

  Row first_row(Workspace::Frame& frame, const Products& products) const;
  void see_token(Index token, const Products& products, Row& row) const;
  Products multiply_summaries(Workspace::Frame& frame, Rows<const S> x) const;
  void estimate(Index t, const Products& products, const Row& row, S* estimates) const;
  void choose(Index top, const S* estimates, Row& row) const;
  bool sum_rest(Index t, const Row& row, S* weights, const RowSums<S>& out) const;

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
