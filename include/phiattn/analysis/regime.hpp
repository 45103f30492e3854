#pragma once

// What to expect of each map, from q and k alone.

#include <phiattn/attention/options.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/fitting/calibration_data.hpp>
#include <phiattn/masks/mask.hpp>
#include <phiattn/similarity.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

struct RegimeOptions {
  Causality causality = Causality::none;  ///< causal: the last query sees the last key
  std::optional<double> scale =
      std::nullopt;    ///< that of the attention to come; default: that of the similarity
  Index queries = 64;  ///< that are looked at, evenly spaced
};

enum class Verdict {
  useful,   ///< nearer to softmax attention than uniform attention is
  useless,  ///< not nearer
  breaks,   ///< normalisers are 0 or negative
};

/// What a map does to the weights of the queries looked at.
struct Expectation {
  double row_l1;            ///< mean_i sum_j |weight_ij - exact_ij|
  double nonpositive_rows;  ///< share of the queries whose normaliser is not positive
  Verdict verdict;
};

/// Statistics of softmax attention on q and k, and what maps make of it, from a few of the queries. Norms and scores are
/// after scaling: sqrt(scale) on each side.
template <detail::ComputeScalar S>
class RegimeOf {
 public:
  /// @param q, k  (n_q, d) and (n_k, d)
  /// @throws std::invalid_argument  if q or k is empty, if they differ in d, or on options out of range
  /// Cost: O((n_q + n_k) d), and O(n_k d) a query looked at.
  RegimeOf(const Input<S>& q, const Input<S>& k, const RegimeOptions& options = {}) : options_(options) {
    detail::check_at_least("queries", options.queries, 1);
    const detail::CalibrationData<S> data(q, k, options.scale.value_or(inverse_sqrt_scale(q.cols())));
    const auto mean_square = [](const Matrix<S>& x) -> double { return x.rowwise().squaredNorm().mean(); };
    const double squares = mean_square(data.q) + mean_square(data.k);
    const double product = data.q.colwise().mean().dot(data.k.colwise().mean());
    query_norm_ = std::sqrt(mean_square(data.q));
    key_norm_ = std::sqrt(mean_square(data.k));
    sum_norm_ = std::sqrt((std::max)(0.0, squares + 2 * product));
    difference_norm_ = std::sqrt((std::max)(0.0, squares - 2 * product));
    keys_ = detail::calibration_rows<S>("rows of k", k);
    look_at(q, data);
  }

  double query_norm() const { return query_norm_; }  ///< root mean square of |q|
  double key_norm() const { return key_norm_; }      ///< of |k|
  double sum_norm() const { return sum_norm_; }      ///< of |q + k| over all pairs: z of relative_moments()
  double difference_norm() const { return difference_norm_; }  ///< of |q - k|: r of relative_moments()
  double score_spread() const { return score_spread_; }    ///< root mean variance of the scores of a query
  double keys_in_sight() const { return keys_in_sight_; }  ///< mean number
  double effective_keys() const {
    return effective_keys_;
  }  ///< median of exp(entropy of the weights of a query)

  /// mean_i sum_j |1/n_i - exact_ij|, the distance of uniform attention: what a map must beat.
  double uniform_row_l1() const { return uniform_row_l1_; }

  /// What to expect of a map, random ones as they were drawn.
  /// @throws std::invalid_argument  if the map is for another dimension
  /// Cost: that of its features for n_k keys, and 2 n_k m flops a query looked at; O(n_k m) memory.
  template <FeatureMap F>
  Expectation expect(const F& map) const {
    detail::check_equal("dimension of the feature map", map.dimension(), "columns of k", keys_.cols());
    const double factor = std::sqrt(options_.scale.value_or(map.default_scale(keys_.cols())));
    const Features queries = query_features(map, factor);
    const Features keys = features(map, Side::keys, factor, keys_, 0);
    Matrix<S> similarities(queries_.rows(), keys_.rows());
    if constexpr (std::same_as<typename F::Kind, LogFeatureMapTag>) {
      // The largest factor of each feature goes to the queries, so that neither side overflows.
      const RowVector<S> largest = keys.values.colwise().maxCoeff();
      Matrix<S> a = queries.values.rowwise() + largest;
      a.colwise() -= a.rowwise().maxCoeff().eval();
      a = a.array().exp();
      const Matrix<S> b = (keys.values.rowwise() - largest).array().exp();
      detail::multiply_transposed<S>(a, b, similarities);
    } else {
      const Vector<S> scales = (keys.log_scales.array() - keys.log_scales.maxCoeff()).exp();
      const Matrix<S> b = scales.asDiagonal() * keys.values;
      detail::multiply_transposed<S>(queries.values, b, similarities);
    }
    return compare(similarities);
  }

 private:
  /// Features; those of positive maps as logarithms, log-scales included.
  struct Features {
    Matrix<S> values;
    Vector<S> log_scales;
  };

  /// Of tokens x times `factor`, the first of them at position `first`.
  template <class F>
  Features features(const F& map, Side side, double factor, const ConstMatrixRef<S>& x, Index first) const {
    using T = typename F::Scalar;
    const Matrix<T> tokens = (static_cast<S>(factor) * x).template cast<T>();
    Matrix<T> values(x.rows(), map.feature_dimension());
    Vector<T> log_scales(x.rows());
    detail::fill_features<F>(map, side, tokens, first, {values, log_scales});
    Features features{values.template cast<S>(), log_scales.template cast<S>()};
    if constexpr (LogFeatureMap<F>) features.values.colwise() += features.log_scales;
    return features;
  }

  /// Maps that depend on positions are told each.
  template <class F>
  Features query_features(const F& map, double factor) const {
    Features all{Matrix<S>(queries_.rows(), map.feature_dimension()), Vector<S>(queries_.rows())};
    for (Index s = 0; const Index query : positions_) {
      const Features one =
          features(map, Side::queries, factor, queries_.middleRows(s, 1), query + (causal() ? offset_ : 0));
      all.values.row(s) = one.values;
      all.log_scales.segment(s++, 1) = one.log_scales;
    }
    return all;
  }

  bool causal() const { return options_.causality == Causality::causal; }

  /// How many keys a query sees.
  Index sight(Index query) const {
    return causal() ? CausalMask{offset_}.keys(query, keys_.rows()).end : keys_.rows();
  }

  void look_at(const Input<S>& q, const detail::CalibrationData<S>& data) {
    offset_ = data.k.rows() - data.q.rows();
    const Index count = (std::min)(options_.queries, data.q.rows());
    for (Index s = 0; s < count; ++s) {
      const Index query = (2 * s + 1) * data.q.rows() / (2 * count);
      if (sight(query) > 0) positions_.push_back(query);
    }
    const auto rows = static_cast<Index>(positions_.size());
    queries_.resize(rows, data.q.cols());
    weights_ = Matrix<S>::Zero(rows, data.k.rows());
    std::vector<double> effective;
    for (Index s = 0; const Index query : positions_) {
      q.slice(query, 1).load(0, 1, queries_.middleRows(s, 1));
      const Index keys = sight(query);
      const Vector<S> scores = data.k.topRows(keys) * data.q.row(query).transpose();
      auto weights = weights_.row(s++).head(keys);
      weights = (scores.array() - scores.maxCoeff()).exp().transpose();
      weights /= weights.sum();
      double entropy = 0;
      for (const S w : weights) entropy -= w > 0 ? w * std::log(w) : 0;
      effective.push_back(std::exp(entropy));
      score_spread_ += (scores.array() - scores.mean()).square().mean() / static_cast<double>(rows);
      keys_in_sight_ += static_cast<double>(keys) / static_cast<double>(rows);
      uniform_row_l1_ += (weights.array() - 1 / static_cast<S>(keys)).abs().sum() / static_cast<double>(rows);
    }
    score_spread_ = std::sqrt(score_spread_);
    if (effective.empty()) return;
    const auto middle = effective.begin() + static_cast<std::ptrdiff_t>(effective.size() / 2);
    std::nth_element(effective.begin(), middle, effective.end());
    effective_keys_ = *middle;
  }

  Expectation compare(const Matrix<S>& similarities) const {
    Expectation expectation{0, 0, Verdict::useful};
    const auto rows = static_cast<double>(similarities.rows());
    for (Index s = 0; s < similarities.rows(); ++s) {
      const Index keys = sight(positions_[static_cast<std::size_t>(s)]);
      const auto row = similarities.row(s).head(keys);
      const S normaliser = row.sum();
      if (!(normaliser > 0)) expectation.nonpositive_rows += 1 / rows;
      expectation.row_l1 += (row / normaliser - weights_.row(s).head(keys)).cwiseAbs().sum() / rows;
    }
    if (expectation.nonpositive_rows > 0) {
      expectation.verdict = Verdict::breaks;
    } else if (!(expectation.row_l1 < uniform_row_l1_)) {
      expectation.verdict = Verdict::useless;
    }
    return expectation;
  }

  RegimeOptions options_;
  double query_norm_ = 0, key_norm_ = 0, sum_norm_ = 0, difference_norm_ = 0;
  double score_spread_ = 0, keys_in_sight_ = 0, effective_keys_ = 0, uniform_row_l1_ = 0;
  Index offset_ = 0;              // of the first query among the keys, when causal
  std::vector<Index> positions_;  // of the queries looked at
  Matrix<S> queries_;             // those, before scaling
  Matrix<S> keys_;                // all, before scaling
  Matrix<S> weights_;             // of softmax attention, (queries looked at, n_k)
};

/// In double, whatever attention computes in.
using Regime = RegimeOf<double>;

}  // namespace phiattn::inline PHIATTN_ABI
