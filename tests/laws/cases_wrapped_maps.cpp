// Maps that stand for others: behind the type of maps chosen at run time, and there behind other queries and keys.

#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/reparametrised.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

namespace {

using oracle::Term;
using oracle::Token;
using Row = Eigen::Matrix<Real, 1, Eigen::Dynamic>;

/// The linear part M of q' = M (q - a), k' = M^-T (k - b): a diagonal, or a mirror, which is its own inverse.
enum class Mixing { diagonal, mirror };

constexpr auto kDiagonal = [](Index l) -> Real { return l % 3 == 0 ? 1.5L : l % 3 == 1 ? 0.75L : -1.25L; };
constexpr auto kQueryShift = [](Index l) -> Real { return l % 2 == 0 ? 0.5L : -0.125L; };
constexpr auto kKeyShift = [](Index l) -> Real { return l % 3 == 0 ? -0.375L : 0.25L; };

oracle::Matrix matrix_of(Mixing mixing, Index d) {
  if (mixing == Mixing::diagonal) return oracle::Vector::NullaryExpr(d, kDiagonal).asDiagonal();
  const oracle::Vector u = oracle::Vector::LinSpaced(d, 1, 2);
  return oracle::Matrix::Identity(d, d) - 2 / u.squaredNorm() * u.lazyProduct(u.transpose());
}

oracle::Matrix inverse_transpose(Mixing mixing, const oracle::Matrix& m) {
  return mixing == Mixing::diagonal ? oracle::Matrix(m.diagonal().cwiseInverse().asDiagonal()) : m;
}

phiattn::Reparametrisation reparametrisation(Mixing mixing, Index d) {
  const oracle::Vector a = oracle::Vector::NullaryExpr(d, kQueryShift);
  const oracle::Vector b = oracle::Vector::NullaryExpr(d, kKeyShift);
  return phiattn::Reparametrisation::shift(a.cast<double>(), b.cast<double>())
      .then(phiattn::Reparametrisation::linear(matrix_of(mixing, d).cast<double>()));
}

/// sim(q', k') exp(b . q + a . (k - b)), with a and b as they are at the similarity's default scale.
///
/// q' comes with an error of eps/2 B, where B = |M| (|q| + |a|), with |M| its longest column since errors of coordinates
/// are independent; k' likewise. To exponents |x|^2/2 + L |x| that adds eps/2 (B + L) B, at most half of eps times what
/// they are at length B, twice over: 3/2 in all. Polynomials are bounded by their values at length B.
oracle::Similarity of_others(const oracle::Similarity& inner, Mixing mixing, Index d) {
  const Real root = std::sqrt(inner.default_scale(d));
  const oracle::Matrix m_q = matrix_of(mixing, d);
  const oracle::Matrix m_k = inverse_transpose(mixing, m_q);
  const Row a = root * Row::NullaryExpr(d, kQueryShift);
  const Row b = root * Row::NullaryExpr(d, kKeyShift);
  return {[=](const Token& q, const Token& k) -> Term {
            const auto longest = [](const oracle::Matrix& m, Real length) -> Row {
              return Row::Unit(m.rows(), 0) * m.colwise().norm().maxCoeff() * length;
            };
            const Real length_q = q.norm() + a.norm();
            const Real length_k = k.norm() + b.norm();
            const Term moved =
                inner.pair((q - a).lazyProduct(m_q.transpose()), (k - b).lazyProduct(m_k.transpose()));
            const Term bound = inner.pair(longest(m_q, length_q), longest(m_k, length_k));
            const Real factor = b.dot(q) + a.dot(k - b);
            // Sums of exponentials do not cancel.
            const Real log_bound = bound.exponent > 0 ? moved.log_bound : bound.log_bound;
            return {moved.log + factor, moved.sign, log_bound + factor,
                    1.5L * bound.exponent + b.norm() * length_q + a.norm() * length_k};
          },
          inner.inverse_sqrt_scale};
}

/// Behind one type for all maps of a kind, so that they are compiled once.
template <class S, class Tag>
Case<S> any_map(const std::string& name, const std::function<phiattn::AnyFeatureMap<S, Tag>(Index d)>& make,
                const std::function<oracle::Similarity(Index d)>& formula) {
  return case_of("any map: " + name, true, make, formula);
}

/// `map(d)` by itself, and behind other queries and keys.
template <class Make>
auto wrapped(const std::string& name, const Make& map,
             const std::function<oracle::Similarity(Index d)>& formula) {
  using Map = std::invoke_result_t<Make, Index>;
  using S = typename Map::Scalar;
  using Kind = typename Map::Kind;
  std::vector<Case<S>> cases{any_map<S, Kind>(name, map, formula)};
  for (const Mixing mixing : {Mixing::diagonal, Mixing::mirror}) {
    cases.push_back(any_map<S, Kind>(
        name + (mixing == Mixing::diagonal ? ", shifted and balanced" : ", shifted and mixed"),
        [=](Index d) { return phiattn::Reparametrised(map(d), reparametrisation(mixing, d)); },
        [=](Index d) { return of_others(formula(d), mixing, d); }));
  }
  return cases;
}

}  // namespace

template <class S>
std::vector<Case<S>> wrapped_maps() {
  const auto favor = [](Index d) {
    return phiattn::PositiveRandomFeatures<S>(phiattn::sample_projection<S>(16, d, {.seed = kSeed}));
  };
  auto cases = wrapped("random features", favor, [=](Index d) {
    return oracle::random_features(favor(d).projection().matrix().template cast<Real>());
  });
  const auto quadratic = wrapped(
      "quadratic", [](Index d) { return phiattn::TaylorFeatures<S>(d, 2); },
      [](Index) { return oracle::taylor(2); });
  cases.insert(cases.end(), quadratic.begin(), quadratic.end());
  return cases;
}

template std::vector<Case<float>> wrapped_maps();
template std::vector<Case<double>> wrapped_maps();

}  // namespace laws
