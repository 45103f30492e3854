// What the golden tests share: the case in a file, every way to run it, and how exact the results must be.
#pragma once

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "support/catch.hpp"
#include "support/json.hpp"

namespace golden {

using phiattn::Index;
using phiattn::Matrix;
using phiattn::Vector;

/// q, k, v and the options that a golden file states.
struct Case {
  explicit Case(const nlohmann::json& json)
      : q(matrix(json["q"])), k(matrix(json["k"])), v(matrix(json["v"])), scale(json.value("scale", 1.0)) {
    if (json.contains("causal") && json["causal"] == true) options.causality = phiattn::Causality::causal;
    options.scale = scale;
  }

  Matrix<double> q, k, v;
  double scale;
  phiattn::AttentionOptions options;

  bool causal() const { return options.causality == phiattn::Causality::causal; }
  Matrix<double> scaled(const Matrix<double>& x) const { return std::sqrt(scale) * x; }
  double largest_value() const { return v.cwiseAbs().maxCoeff(); }
};

/// a b^T: products compile slowly, so there is one.
inline Matrix<double> products(const Matrix<double>& a, const Matrix<double>& b) { return a * b.transpose(); }

/// max |actual - expected|, NaN if any entry is: no bound admits it.
inline double distance(const Matrix<double>& actual, const Matrix<double>& expected) {
  REQUIRE(actual.rows() == expected.rows());
  REQUIRE(actual.cols() == expected.cols());
  return (actual - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

/// max |actual - expected| / size, entry by entry
inline double distance(const Matrix<double>& actual, const Matrix<double>& expected,
                       const Matrix<double>& size) {
  return distance(actual.cwiseQuotient(size), expected.cwiseQuotient(size));
}

/// max |actual / expected - 1|; 0 must be 0.
inline double relative_distance(const Matrix<double>& actual, const Matrix<double>& expected) {
  const Matrix<double> size =
      expected.unaryExpr([](double x) { return x == 0 ? std::numeric_limits<double>::min() : std::abs(x); });
  return distance(actual, expected, size);
}

/// Relative error of a weight exp(x), where x is a sum of `terms` products whose absolute values sum to `size`: one
/// unit roundoff of `size` an addition, and 16 for what else is done to a weight (rounding the inputs, scaling them,
/// shifting, the exponential). Counted twice, for numerator and normaliser; made in S here and in double by the file.
template <class S>
double rounding(Index terms, double size) {
  constexpr double kUnit =
      (static_cast<double>(std::numeric_limits<S>::epsilon()) + std::numeric_limits<double>::epsilon()) / 2;
  return std::expm1(2 * static_cast<double>(terms + 16) * kUnit * (1 + size));
}

template <class F>
struct Any {
  using type = phiattn::AnyFeatureMap<typename F::Scalar, typename F::Kind>;
};

/// Every way to run a similarity; definitions in cases_run.hpp.
template <class F>
struct Runs {
  using S = typename F::Scalar;

  static phiattn::Partial<double> read_each_query(const F& similarity, const Case& given);
  static void check_out(const F& similarity, const Case& given, const Matrix<double>& expected, double bound);
  static Matrix<double> weights(const F& similarity, const Case& given);
};

extern template struct Runs<phiattn::AnyFeatureMap<float, phiattn::LogFeatureMapTag>>;
extern template struct Runs<phiattn::AnyFeatureMap<double, phiattn::LogFeatureMapTag>>;
extern template struct Runs<phiattn::AnyFeatureMap<float, phiattn::SignedFeatureMapTag>>;
extern template struct Runs<phiattn::AnyFeatureMap<double, phiattn::SignedFeatureMapTag>>;

/// Maps are run as AnyFeatureMap, which cases.cpp compiles once for all tests.
template <class F>
using RunsOf = Runs<typename std::conditional_t<phiattn::FeatureMap<F>, Any<F>, std::type_identity<F>>::type>;

/// Attention with log-normaliser and sign by the definition: each query reads a memory of just the keys it sees.
template <class F>
phiattn::Partial<double> read_each_query(const F& similarity, const Case& given) {
  return RunsOf<F>::read_each_query(similarity, given);
}

/// The outputs of attention() in chunks of every size and, where causal, of a memory advanced by such blocks.
template <class F>
void check_out(const F& similarity, const Case& given, const Matrix<double>& expected, double bound) {
  RunsOf<F>::check_out(similarity, given, expected, bound);
}

/// The matrix of weights itself.
template <class F>
Matrix<double> weights(const F& similarity, const Case& given) {
  return RunsOf<F>::weights(similarity, given);
}

}  // namespace golden
