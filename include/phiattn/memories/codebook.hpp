#pragma once

// Centres of the keys, and which of them is nearest to a key. Next: memories/closure_mixture.hpp.

#include <phiattn/core/calibration.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/memories/token_frame.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace phiattn {

struct KMeansOptions {
  Index iterations = 20;
  Index restarts = 4;  // from other centres; the tightest clusters win
  std::uint64_t seed = 0;
};

namespace detail {

/// Index of the nearest centre of each row: argmin_c |x - c|^2, the first of equals. A row that is not finite gets 0.
/// `scores` (n, C) is scratch. Cost: 2 n C d flops.
template <class S>
void nearest_centres(Rows<const S> x, Rows<const S> centres, const S* half_squares, Rows<S> scores,
                     Index* nearest) {
  multiply_transposed<S>(x, centres, scores);
  for (Index t = 0; t < x.rows; ++t) {
    Index best = 0;
    for (Index c = 1; c < centres.rows; ++c) {
      if (scores(t, c) - half_squares[c] > scores(t, best) - half_squares[best]) best = c;
    }
    nearest[t] = best;
  }
}

/// Squared distance of every row of x to centre c.
inline Vector<double> squared_distances(const Matrix<double>& x, const RowVector<double>& centre) {
  Vector<double> distances(x.rows());
  for (Index t = 0; t < x.rows(); ++t) distances(t) = (x.row(t) - centre).squaredNorm();
  return distances;
}

/// The first centre is the row nearest to the mean, each other a row drawn with probability proportional to its squared
/// distance from the centres so far (k-means++, Arthur & Vassilvitskii 2007).
inline Matrix<double> seed_centres(const Matrix<double>& x, Index count, const Philox& random) {
  Matrix<double> centres(count, x.cols());
  Index chosen = 0;
  squared_distances(x, x.colwise().mean()).minCoeff(&chosen);
  Vector<double> distances = Vector<double>::Constant(x.rows(), std::numeric_limits<double>::infinity());
  for (Index c = 0; c < count; ++c) {
    centres.row(c) = x.row(chosen);
    distances = distances.cwiseMin(squared_distances(x, centres.row(c)));
    double left = random.uniform(static_cast<std::uint64_t>(c)) * distances.sum();
    for (chosen = 0; chosen + 1 < x.rows() && left >= distances(chosen); ++chosen) left -= distances(chosen);
  }
  return centres;
}

/// Centres, and the sum of squared distances of the rows of x to the nearest of them.
struct Clustering {
  Matrix<double> centres;
  double spread;
};

inline Clustering lloyd(const Matrix<double>& x, Matrix<double> centres, Index iterations) {
  const Index count = centres.rows();
  const double squares = x.squaredNorm();
  Matrix<double> scores(x.rows(), count);
  std::vector<Index> nearest(static_cast<std::size_t>(x.rows()));
  for (Index iteration = 0;; ++iteration) {
    const Vector<double> half_squares = centres.rowwise().squaredNorm() / 2;
    nearest_centres<double>(x, centres, half_squares.data(), scores, nearest.data());
    Matrix<double> sums = Matrix<double>::Zero(count, x.cols());
    Vector<double> sizes = Vector<double>::Zero(count);
    double spread = squares;
    for (Index t = 0; t < x.rows(); ++t) {
      const Index c = nearest[static_cast<std::size_t>(t)];
      sums.row(c) += x.row(t);
      sizes(c) += 1;
      spread += 2 * (half_squares(c) - scores(t, c));
    }
    const Matrix<double> before = centres;
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
inline Matrix<double> k_means(const Input<double>& x, Index count, const KMeansOptions& options = {}) {
  detail::check_at_least("centres", count, 1);
  detail::check_at_least("iterations", options.iterations, 0);
  detail::check_at_least("restarts", options.restarts, 1);
  detail::check_at_least("rows of x", x.rows(), count);
  const Matrix<double> rows = detail::calibration_rows("rows of x", x);
  detail::Clustering best;
  for (Index start = 0; start < options.restarts; ++start) {
    const auto stream = static_cast<std::uint64_t>(start);
    auto found = detail::lloyd(rows, detail::seed_centres(rows, count, Philox(options.seed, stream)),
                               options.iterations);
    if (start == 0 || found.spread < best.spread) best = std::move(found);
  }
  return best.centres;
}

namespace detail {

/// The centres of a memory, at its scale and in its compute type. Copies share them.
template <class S>
class Codebook {
 public:
  /// @throws std::invalid_argument  if there are no centres or of another dimension than the frame
  Codebook(const Input<double>& centres, const TokenFrame<S>& frame) {
    check_at_least("rows of centres", centres.rows(), 1);
    check_equal("columns of centres", centres.cols(), "dimension d", frame.dimension());
    Matrix<double> rows(centres.rows(), centres.cols());
    centres.load(0, std::sqrt(frame.scale()), rows);
    Centres own{rows.cast<S>(), {}};
    own.half_squares = own.rows.rowwise().squaredNorm() / 2;
    centres_ = std::make_shared<const Centres>(std::move(own));
  }

  Index size() const { return centres_->rows.rows(); }

  /// The centre of each key (n, d) of the frame.
  const Index* nearest(Workspace::Frame& frame, Rows<const S> keys) const {
    auto* const nearest = frame.numbers<Index>(keys.rows);
    Workspace::Frame own;
    nearest_centres<S>(keys, centres_->rows, centres_->half_squares.data(), own.rows<S>(keys.rows, size()), nearest);
    return nearest;
  }

  void check_same(const Codebook& other) const {
    if (other.centres_ == centres_ || (other.size() == size() && other.centres_->rows == centres_->rows))
      return;
    fail_argument("merge: the memories differ in their centres");
  }

 private:
  struct Centres {
    Matrix<S> rows;
    Vector<S> half_squares;
  };
  std::shared_ptr<const Centres> centres_;
};

}  // namespace detail
}  // namespace phiattn
