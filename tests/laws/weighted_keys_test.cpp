// Keys with weights in the one call, prefix masks and log-normalisers, of feature maps and memories: a padded key has never
// existed, and a query stands beside the last that does.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/window.hpp>

#include <cmath>
#include <functional>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kDimension = 4;
constexpr Index kValues = 2;

template <class S>
constexpr double kTolerance = std::is_same_v<S, float> ? 2e-5 : 1e-12;

/// Positive tokens with log-weights, of which those that are missing hold what must not matter.
template <class S>
Problem<S> padded(Index n_q, Index n_k, const std::function<bool(Index)>& missing) {
  auto problem = gaussian_problem<S>({n_q, n_k, kDimension, kValues});
  problem.q = problem.q.cwiseAbs();
  problem.k = problem.k.cwiseAbs();
  problem.log_weights = gaussian<S>(n_k, 1, kSeed + 3);
  for (Index j = 0; j < n_k; ++j) {
    if (!missing(j)) continue;
    problem.log_weights(j) = -std::numeric_limits<S>::infinity();
    problem.k.row(j).setConstant(std::numeric_limits<S>::quiet_NaN());
    problem.v.row(j).setConstant(std::numeric_limits<S>::infinity());
  }
  return problem;
}

std::vector<std::function<bool(Index)>> patterns() {
  return {[](Index) { return false; },
          [](Index j) { return j % 2 == 0; },
          [](Index j) { return j / 7 % 2 == 1; },
          [](Index j) { return j < 12; },
          [](Index j) { return j >= 20; },
          [](Index j) { return j != 15; },
          [](Index) { return true; }};
}

/// The keys that exist, and where a row stands among them.
template <class S>
struct Dropped {
  Matrix<S> k, v, log_weights;
  std::vector<Index> rows;

  explicit Dropped(const Problem<S>& problem) {
    for (Index j = 0; j < problem.k.rows(); ++j) {
      if (problem.log_weights(j) != -std::numeric_limits<S>::infinity()) rows.push_back(j);
    }
    k.resize(size(), kDimension), v.resize(size(), kValues), log_weights.resize(size(), 1);
    for (Index p = 0; p < size(); ++p) {
      const Index j = rows[static_cast<std::size_t>(p)];
      k.row(p) = problem.k.row(j), v.row(p) = problem.v.row(j), log_weights(p) = problem.log_weights(j);
    }
  }

  Index size() const { return static_cast<Index>(rows.size()); }
  /// How many stand at or before a row.
  Index count(Index row) const { return std::upper_bound(rows.begin(), rows.end(), row) - rows.begin(); }
  Index position(Index row, Index n_k) const {
    if (row < 0) return row;
    return std::max<Index>(count(row) - 1, 0) + std::max<Index>(row - n_k + 1, 0);
  }
};

/// The first n keys, and those at or before the row.
struct Prefix {
  static constexpr bool kPrefix = true;
  Index n;
  phiattn::KeyRange keys(Index row, Index n_k) const { return {0, std::min(std::max(n, row + 1), n_k)}; }
};

template <class S>
phiattn::LinearState<phiattn::CosformerFeatures<S>> cosformer() {
  return {phiattn::CosformerFeatures<S>(kDimension, 200), kValues};
}

}  // namespace

TEMPLATE_TEST_CASE("weighted keys in a call of a feature map, row by row", "[laws]", float, double) {
  using S = TestType;
  const phiattn::CosformerFeatures<S> map(kDimension, 200);
  for (const auto& [n_q, n_k] : {std::pair<Index, Index>{1, 1}, {30, 30}, {20, 37}, {37, 20}}) {
    for (const auto& missing : patterns()) {
      for (const AttentionOptions& options : std::vector<AttentionOptions>{
               {},
               {.query_offset = 3},
               {.causality = Causality::causal},
               {.causality = Causality::causal, .alignment = phiattn::Alignment::first}}) {
        const auto problem = padded<S>(n_q, n_k, missing);
        const Dropped<S> there(problem);
        const bool causal = options.causality == Causality::causal;
        const Index offset = options.query_offset.value_or(
            causal && options.alignment == phiattn::Alignment::last ? n_k - n_q : 0);
        Matrix<S> due(n_q, kValues);
        Vector<S> log_normaliser(n_q);
        for (Index i = 0; i < n_q; ++i) {
          const Index n = causal ? there.count(i + offset) : there.size();
          auto state = cosformer<S>();
          state.append(there.k.topRows(n), there.v.topRows(n), there.log_weights.topRows(n));
          const auto one = state.read_partial(problem.q.row(i), there.position(i + offset, n_k));
          due.row(i) = one.out;
          log_normaliser(i) = one.log_normaliser(0);
        }
        CAPTURE(n_q, n_k, causal, offset, problem.log_weights.transpose());
        const auto keys = phiattn::weighted(problem.k, problem.log_weights);
        CHECK(phiattn::maximal_error(phiattn::attention(map, problem.q, keys, problem.v, options), due) <
              kTolerance<S>);
        phiattn::Partial<S> partial;
        phiattn::attention(map, problem.q, keys, problem.v, partial, options);
        CHECK(phiattn::maximal_error(partial.out, due) < kTolerance<S>);
        for (Index i = 0; i < n_q; ++i) {
          const S came = partial.log_normaliser(i);
          CHECK((came == log_normaliser(i) || std::abs(came - log_normaliser(i)) < kTolerance<S> * 10));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("a feature map takes a mask that hides no key again", "[laws]", float, double) {
  using S = TestType;
  const phiattn::CosformerFeatures<S> map(kDimension, 200);
  for (const auto& missing : patterns()) {
    const Index n_q = 33, n_k = 30;
    const auto problem = padded<S>(n_q, n_k, missing);
    const Dropped<S> there(problem);
    const auto check = [&](const auto& mask) {
      Matrix<S> due(n_q, kValues), out(n_q, kValues);
      for (Index i = 0; i < n_q; ++i) {
        auto state = cosformer<S>();
        const Index n = there.count(mask.keys(i, n_k).end - 1);
        state.append(there.k.topRows(n), there.v.topRows(n), there.log_weights.topRows(n));
        due.row(i) = state.read(problem.q.row(i), there.position(i, n_k));
      }
      phiattn::attention(map, problem.q, phiattn::weighted(problem.k, problem.log_weights), problem.v, out,
                         mask);
      CAPTURE(problem.log_weights.transpose());
      CHECK(phiattn::maximal_error(out, due) < kTolerance<S>);
    };
    check(Prefix{0});
    check(Prefix{12});
    check(phiattn::CausalMask{5});
    check(phiattn::CausalMask{-4});
    check(phiattn::AllKeys());
  }
}

TEMPLATE_TEST_CASE("weighted keys about a window, in both directions", "[laws]", float, double) {
  using S = TestType;
  for (const auto& [n_q, n_k] : {std::pair<Index, Index>{1, 1}, {30, 30}, {20, 37}, {37, 20}}) {
    for (const auto& missing : patterns()) {
      for (const Index window : {0, 6, 70}) {
        for (const Index offset : {0, 5, -3}) {
          const auto problem = padded<S>(n_q, n_k, missing);
          const Dropped<S> there(problem);
          const phiattn::Windowed memory(window, phiattn::ForgetfulMemory<S>(kValues), {.chunk = 8});
          Matrix<S> due(n_q, kValues);
          for (Index i = 0; i < n_q; ++i) {
            const Index at = there.position(i + offset, n_k);
            due.row(i) = phiattn::attention(memory, problem.q.row(i), there.k, there.v, {.query_offset = at});
          }
          auto even = problem;
          for (S& weight : even.log_weights) {
            if (weight != -std::numeric_limits<S>::infinity()) weight = 0;
          }
          CAPTURE(n_q, n_k, window, offset, problem.log_weights.transpose());
          const auto out =
              phiattn::attention(memory, problem.q, phiattn::weighted(problem.k, even.log_weights), problem.v,
                                 {.query_offset = offset});
          CHECK(phiattn::maximal_error(out, due) < kTolerance<S>);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("log-weights of slope times position are a constant decay: ALiBi in linear time", "[laws]",
                   float, double) {
  using S = TestType;
  constexpr double kSlope = 0.25;
  constexpr Index kTokens = 200;
  const auto problem = padded<S>(kTokens, kTokens, [](Index) { return false; });
  const phiattn::EluFeatures<S> map(kDimension);
  const AttentionOptions causal{.causality = Causality::causal, .chunk = 16};
  Matrix<double> weights =
      phiattn::attention_weights(map, problem.q, problem.k, causal).template cast<double>();
  for (Index i = 0; i < kTokens; ++i) {
    for (Index j = 0; j <= i; ++j) weights(i, j) *= std::exp(-kSlope * static_cast<double>(i - j));
    weights.row(i) /= weights.row(i).sum();
  }
  const Matrix<double> due = weights * problem.v.template cast<double>();
  const auto decay = phiattn::Vector<S>::LinSpaced(kTokens, 0, S(kSlope * (kTokens - 1))).eval();
  const Matrix<S> came =
      phiattn::attention(map, problem.q, phiattn::weighted(problem.k, decay), problem.v, causal);
  CHECK((came.template cast<double>() - due).cwiseAbs().maxCoeff() <=
        kTolerance<S> * problem.v.cwiseAbs().maxCoeff());
}
