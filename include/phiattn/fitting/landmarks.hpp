#pragma once

// A few rows that stand for many.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

inline void check_landmarks(Index count, Index n) {
  check_at_least("number of landmarks", count, 1);
  check_at_least("rows of x, one a landmark at least", n, count);
}

}  // namespace detail

/// The means of `count` segments of consecutive rows, lengths differing by 1 at most (Xiong et al. 2021,
/// "Nystromformer").
///
/// Keys of a sequence vary slowly, so that segments are alike; of shuffled rows every mean is near the same point.
/// Looks at all rows: landmarks of the very keys they then serve let causal attention see the future.
/// @return (count, d)
/// @throws std::invalid_argument  unless 1 <= count <= n
/// Cost: n d additions.
template <detail::ComputeScalar S = double>
Matrix<S> segment_means(const std::type_identity_t<Input<S>>& x, Index count) {
  detail::check_landmarks(count, x.rows());
  Matrix<S> rows(x.rows(), x.cols());
  x.load(0, 1, rows);
  Matrix<S> means(count, x.cols());
  Index begin = 0;
  for (Index l = 0; l < count; ++l) {
    const Index length = (x.rows() - begin) / (count - l);
    means.row(l) = rows.middleRows(begin, length).colwise().mean();
    begin += length;
  }
  return means;
}

/// `count` different rows of x (n, d) at random, every choice as likely; a function of (x, count, seed) alone.
/// @return (count, d)
/// @throws std::invalid_argument  unless 1 <= count <= n
/// Cost: count random numbers and n + count d copies.
template <detail::ComputeScalar S = double>
Matrix<S> sampled_rows(const std::type_identity_t<Input<S>>& x, Index count, std::uint64_t seed) {
  detail::check_landmarks(count, x.rows());
  const Philox random(seed);
  std::vector<Index> order(static_cast<std::size_t>(x.rows()));
  std::iota(order.begin(), order.end(), Index{0});
  Matrix<S> sample(count, x.cols());
  for (Index l = 0; l < count; ++l) {  // Fisher and Yates, as far as needed
    const double u = random.uniform(static_cast<std::uint64_t>(l));
    const Index pick = l + static_cast<Index>(u * static_cast<double>(x.rows() - l));
    std::swap(order[static_cast<std::size_t>(l)], order[static_cast<std::size_t>(pick)]);
    x.load(order[static_cast<std::size_t>(l)], 1, sample.middleRows(l, 1));
  }
  return sample;
}

}  // namespace phiattn::inline PHIATTN_ABI
