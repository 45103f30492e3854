#pragma once

// Centres of rows.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/fitting/calibration_data.hpp>
#include <phiattn/memories/nearest_centres.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

struct KMeansOptions {
  Index iterations = 20;
  Index restarts = 4;  // from other centres; the tightest clusters win
  std::uint64_t seed = 0;
};

namespace detail {

/// Squared distance of every row of x to centre c.
template <class S>
Vector<S> squared_distances(const Matrix<S>& x, const std::type_identity_t<RowVector<S>>& centre) {
  Vector<S> distances(x.rows());
  for (Index t = 0; t < x.rows(); ++t) distances(t) = (x.row(t) - centre).squaredNorm();
  return distances;
}

/// The first centre is the row nearest to the mean, each other a row drawn with probability proportional to its squared
/// distance from the centres so far (k-means++, Arthur & Vassilvitskii 2007).
template <class S>
Matrix<S> seed_centres(const Matrix<S>& x, Index count, const Philox& random) {
  Matrix<S> centres(count, x.cols());
  Index chosen = 0;
  squared_distances(x, x.colwise().mean()).minCoeff(&chosen);
  Vector<S> distances = Vector<S>::Constant(x.rows(), std::numeric_limits<S>::infinity());
  for (Index c = 0; c < count; ++c) {
    centres.row(c) = x.row(chosen);
    distances = distances.cwiseMin(squared_distances(x, centres.row(c)));
    S left = static_cast<S>(random.uniform(static_cast<std::uint64_t>(c))) * distances.sum();
    for (chosen = 0; chosen + 1 < x.rows() && left >= distances(chosen); ++chosen) left -= distances(chosen);
  }
  return centres;
}

/// Centres, and the sum of squared distances of the rows of x to the nearest of them.
template <class S>
struct Clustering {
  Matrix<S> centres;
  S spread;
};

template <class S>
Clustering<S> lloyd(const Matrix<S>& x, Matrix<S> centres, Index iterations) {
  const Index count = centres.rows();
  const S squares = x.squaredNorm();
  Matrix<S> scores(x.rows(), count);
  std::vector<Index> nearest(static_cast<std::size_t>(x.rows()));
  for (Index iteration = 0;; ++iteration) {
    const Vector<S> half_squares = centres.rowwise().squaredNorm() / 2;
    nearest_centres<S>(x, centres, half_squares.data(), scores, nearest.data());
    Matrix<S> sums = Matrix<S>::Zero(count, x.cols());
    Vector<S> sizes = Vector<S>::Zero(count);
    S spread = squares;
    for (Index t = 0; t < x.rows(); ++t) {
      const Index c = nearest[static_cast<std::size_t>(t)];
      sums.row(c) += x.row(t);
      sizes(c) += 1;
      spread += 2 * (half_squares(c) - scores(t, c));
    }
    const Matrix<S> before = centres;
    for (Index c = 0; c < count; ++c) {
      if (sizes(c) > 0) centres.row(c) = sums.row(c) / sizes(c);
    }
    if (iteration == iterations || centres == before) return {before, spread};
  }
}

}  // namespace detail

/// Centres (count, d) of rows x (n, d) by Lloyd's iteration (1982): each the mean of the rows nearest to it. For keys
/// as a memory sees them: of a reparametrisation r, cluster r.keys(k). Euclidean distance serves attention best where
/// the reparametrisation balances queries and keys.
/// @throws std::invalid_argument  if there are fewer rows than centres, or on options out of range
/// Cost: 2 n count d flops an iteration. The same centres on every run.
template <detail::ComputeScalar S = double>
Matrix<S> k_means(const std::type_identity_t<Input<S>>& x, Index count, const KMeansOptions& options = {}) {
  detail::check_at_least("centres", count, 1);
  detail::check_at_least("iterations", options.iterations, 0);
  detail::check_at_least("restarts", options.restarts, 1);
  detail::check_at_least("rows of x", x.rows(), count);
  const Matrix<S> rows = detail::calibration_rows<S>("x", x);
  detail::Clustering<S> best;
  for (Index start = 0; start < options.restarts; ++start) {
    const auto stream = static_cast<std::uint64_t>(start);
    auto found = detail::lloyd<S>(rows, detail::seed_centres<S>(rows, count, Philox(options.seed, stream)),
                                  options.iterations);
    if (start == 0 || found.spread < best.spread) best = std::move(found);
  }
  return best.centres;
}

}  // namespace phiattn::inline PHIATTN_ABI
