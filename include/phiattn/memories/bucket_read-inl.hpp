#pragma once

// Included where clusters are compiled.

#include <phiattn/core/exp.hpp>
#include <phiattn/core/micro_kernel.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/bucket_read.hpp>

#include <algorithm>
#include <limits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// The weights of a few queries, a row each.
template <class S>
void read_in_rows(Rows<const S> queries, const Tokens<S>& tokens, const BucketReader* readers,
                  const RowSums<S>& out) {
  Workspace::Frame frame;
  const Index n = queries.rows, m = tokens.size();
  const Rows<S> scores = frame.rows<S>(n, m), sums = frame.rows<S>(n, tokens.v.cols);
  multiply_transposed<S>(queries, tokens.k, scores);
  for (Index p = 0; p < n; ++p) {
    const Index row = readers[p].row, visible = std::clamp<Index>(readers[p].visible - tokens.first, 0, m);
    Eigen::Map<RowVector<S>> seen(scores.row(p), visible);
    std::fill_n(scores.row(p) + visible, m - visible, S(0));
    if (visible == 0) continue;
    seen += Eigen::Map<const RowVector<S>>(tokens.log_weights, visible);
    out.raise(row, largest(seen));
    exp_shifted(seen.head(visible), out.log_scale[row]);
    out.normaliser[row] += seen.sum();
  }
  multiply<S>(scores, tokens.v, sums);
  for (Index p = 0; p < n; ++p) out.row(readers[p].row) += sums.eigen().row(p);
}

/// scores (m, whole packets) <- exp(scores + log-weights - tops), with sums of the columns; with `tops` unknown, they
/// become the largest of each column and the scores stay logarithms.
template <class S, bool Known>
void weigh_columns(Rows<S> scores, const S* log_weights, S* tops, S* sums) {
  using P = Packet<S>;
  const Index m = scores.rows, stride = scores.stride;
  for (Index p = 0; p < scores.cols; p += kPacket<S>) {
    P top = Known ? ploadu<P>(tops + p) : pset1<P>(kNothing<S>);
    P sum = pset1<P>(S(0));
    S* at = scores.data + p;
    for (Index j = 0; j < m; ++j, at += stride) {
      if constexpr (Known) {
        const P weight = packet_exp_to_one<S>(P(psub(ploadu<P>(at), top)));
        sum = padd(sum, weight);
        pstoreu(at, weight);
      } else {
        const P score = padd(ploadu<P>(at), pset1<P>(log_weights[j]));
        top = pmax(top, score);  // the first argument prevails where one is NaN
        pstoreu(at, score);
      }
    }
    if constexpr (Known) {
      pstoreu(sums + p, sum);
    } else {
      pstoreu(tops + p, top);
    }
  }
}

/// The weights of many queries, a column each: keys, values and weights come as products want them, and largest scores
/// and sums of a packet of queries at a time.
template <class S>
void read_in_columns(Rows<const S> queries, Index n, const Tokens<S>& tokens, const BucketReader* readers,
                     const RowSums<S>& out) {
  Workspace::Frame frame;
  const Index m = tokens.size(), whole = queries.cols;
  const Rows<S> scores = frame.rows<S>(m, whole), sums = frame.rows<S>(n, tokens.v.cols);
  S *const tops = frame.numbers<S>(whole), *const normalisers = frame.numbers<S>(whole);
  multiply<S>(tokens.k, queries, scores);
  for (Index p = 0; p < n && readers[p].visible < tokens.first + m; ++p) {
    for (Index j = std::max<Index>(readers[p].visible - tokens.first, 0); j < m; ++j) {
      scores(j, p) = -std::numeric_limits<S>::infinity();
    }
  }
  weigh_columns<S, false>(scores, tokens.log_weights, tops, nullptr);
  for (Index p = 0; p < whole; ++p) {
    if (p < n) out.raise(readers[p].row, tops[p]);
    tops[p] = p < n ? out.log_scale[readers[p].row] : S(0);
  }
  weigh_columns<S, true>(scores, nullptr, tops, normalisers);
  sums.eigen().setZero();
  transposed_multiply_add<S>(scores.left(n), tokens.v, sums);
  for (Index p = 0; p < n; ++p) {
    out.normaliser[readers[p].row] += normalisers[p];
    out.row(readers[p].row) += sums.eigen().row(p);
  }
}

template <class S>
void read_bucket(Rows<const S> x, const TokenStore<S>& bucket, const BucketReader* readers, Index n,
                 const RowSums<S>& out) {
  if (n == 0) return;
  constexpr Index kFew = 4;       // readers whose dot products cost less than columns that are left empty
  constexpr Index kTokens = 256;  // whose scores stay near
  Workspace::Frame frame;
  const Index m = readers[n - 1].visible;  // the last sees most
  const Index whole = n <= kFew ? 0 : padded<S>(n);
  const Rows<S> queries = frame.rows<S>((std::max)(n, whole), x.cols);
  const Rows<S> columns = frame.rows<S>(x.cols, whole);
  for (Index p = 0; p < n; ++p) std::copy_n(x.row(readers[p].row), x.cols, queries.row(p));
  for (Index p = n; p < whole; ++p) std::fill_n(queries.row(p), x.cols, S(0));
  if (n > kFew) pack<S>({queries.data, 1, queries.stride}, x.cols, whole, whole, columns.data);
  const Index step = n <= kFew ? m : kTokens;
  for (Index first = 0; first < m; first += step) {
    const Tokens<S> tokens = bucket.all().middle(first, (std::min)(step, m - first));
    if (n <= kFew) {
      read_in_rows<S>(queries.top(n), tokens, readers, out);
    } else {
      read_in_columns<S>(columns, n, tokens, readers, out);
    }
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
