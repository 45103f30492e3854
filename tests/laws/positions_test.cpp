// A map that looks at positions: every way to run it gives each token the place that it has. Memories count their own
// tokens, so that the laws of splitting and merging are not for it.

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/cosformer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kTokens = 130;
constexpr Index kDimension = 5;
constexpr std::array<Index, 3> kHorizons{300, 130, 21};  // all tokens within, just so, and not

template <class S>
phiattn::CosformerFeatures<S> cosformer(Index M) {
  return {kDimension, M};
}

/// relu(q_i) . relu(k_j) cos(pi (i - j) / (2M)) of tokens whose last coordinate is their position.
oracle::Similarity by_position(Index M) {
  return {[M](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
            Real product = 0;
            for (Index c = 0; c < kDimension; ++c)
              product += std::max(q(c), Real(0)) * std::max(k(c), Real(0));
            const Real angle =
                std::numbers::pi_v<Real> * (q(kDimension) - k(kDimension)) / static_cast<Real>(2 * M);
            const Real sum = product * std::cos(angle);
            return {std::log(std::abs(sum)), sum < 0 ? Real(-1) : Real(1), std::log(product), 0};
          },
          false};
}

template <class S>
oracle::Matrix with_positions(const Matrix<S>& x, Index first) {
  oracle::Matrix extended(x.rows(), x.cols() + 1);
  extended.leftCols(x.cols()) = x.template cast<Real>();
  for (Index t = 0; t < x.rows(); ++t) extended(t, x.cols()) = static_cast<Real>(first + t);
  return extended;
}

template <class S>
Expected expected(Index M, const Problem<S>& problem) {
  const bool causal = problem.options.causality == Causality::causal;
  const Index aligned = problem.k.rows() - problem.q.rows();
  const Index offset = problem.options.query_offset.value_or(causal ? aligned : 0);
  return oracle::attend(by_position(M), with_positions(problem.q, offset), with_positions(problem.k, 0),
                        problem.v.template cast<Real>(), problem.options);
}

/// Tokens of mostly positive coordinates.
template <class S>
Problem<S> positive_problem(Index n_q, Index n_k, const AttentionOptions& options) {
  auto problem = gaussian_problem<S>({n_q, n_k, kDimension, 3}, options);
  problem.q.array() += S(0.7);
  problem.k.array() += S(0.7);
  return problem;
}

constexpr AttentionOptions kCausal{.causality = Causality::causal};

}  // namespace

TEMPLATE_TEST_CASE("cosFormer attention is its definition by position, in chunks of any size", "[laws]",
                   float, double) {
  for (const Index M : kHorizons) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      for (const Index chunk : {1, 7, 64, 128}) {
        CAPTURE(M, causality, chunk);
        const auto problem =
            positive_problem<TestType>(kTokens, kTokens, {.causality = causality, .chunk = chunk});
        const auto& [q, k, v, options, none] = problem;
        CHECK(error(phiattn::attention(cosformer<TestType>(M), q, k, v, options), expected(M, problem)) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("the first query stands at query_offset", "[laws]", float, double) {
  for (const Index M : kHorizons) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      for (const auto& [n_q, n_k] : {std::pair<Index, Index>{20, 70}, {70, 20}}) {
        for (const Index offset : {-30, -1, 0, 5, 50, 100}) {
          CAPTURE(M, causality, n_q, n_k, offset);
          auto problem = positive_problem<TestType>(n_q, n_k, {.causality = causality, .chunk = 16});
          problem.options.query_offset = offset;
          const Matrix<TestType> out =
              phiattn::attention(cosformer<TestType>(M), problem.q, problem.k, problem.v, problem.options);
          CHECK(error(out, expected(M, problem)) <= 1);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE(
    "positions of queries repeat after 4M however far they are, and beyond 2^62 they are all one", "[laws]",
    float, double) {
  const auto problem = positive_problem<TestType>(40, 20, {});
  const auto& [q, k, v, none, no_weights] = problem;
  const Matrix<TestType> equal = q.row(0).replicate(40, 1);
  for (const Index M : kHorizons) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      CAPTURE(M, causality);
      const auto out_at = [&, &k = k, &v = v](const Matrix<TestType>& queries, Index offset) {
        return phiattn::attention(cosformer<TestType>(M), queries, k, v,
                                  {.causality = causality, .query_offset = offset, .chunk = 16});
      };
      for (const Index turns : {Index{1}, Index{1'000'000'000'000}}) {
        CHECK(same_bits(out_at(q, 25 + 4 * M * turns), out_at(q, 25)));
      }
      const Matrix<TestType> last = out_at(equal, std::numeric_limits<Index>::max());
      CHECK(last.allFinite());
      CHECK(same_bits<TestType>(last, last.row(0).replicate(40, 1)));
      CHECK(same_bits(last, out_at(equal, Index{1} << 62)));
      if (causality == Causality::none) CHECK(out_at(q, std::numeric_limits<Index>::min()).allFinite());
    }
  }
}

TEMPLATE_TEST_CASE("a memory places its keys after those it holds, and its queries beside them or as told",
                   "[laws]", float, double) {
  const auto problem = positive_problem<TestType>(kTokens, kTokens, kCausal);
  const auto& [q, k, v, options, none] = problem;
  for (const Index M : kHorizons) {
    const Expected due = expected(M, problem);
    for (const Index block : {1, 2, 31, 64, 129}) {
      CAPTURE(M, block);
      phiattn::LinearState advanced(cosformer<TestType>(M), 3), appended = advanced;
      Matrix<TestType> out(kTokens, 3);
      for (Index t = 0; t < kTokens; t += block) {
        const Index n = std::min(block, kTokens - t);
        advanced.advance(q.middleRows(t, n), k.middleRows(t, n), v.middleRows(t, n), out.middleRows(t, n));
      }
      CHECK(error(out, due) <= 1);
      for (Index t = 0; t < kTokens; ++t) {
        appended.append(k.row(t), v.row(t));
        out.row(t) = appended.read(q.row(t), t);
      }
      CHECK(error(out, due) <= 1);

      auto full = problem;
      full.options = {.query_offset = 17};
      CHECK(error(advanced.read_partial(q, 17), expected(M, full)) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE(
    "within the horizon every normaliser is positive and beyond it the status counts those that are not",
    "[laws]", float, double) {
  for (const Index M : kHorizons) {
    CAPTURE(M);
    // Queries far beyond 20 keys: at distances from M to 3M for the shortest horizon.
    auto problem = positive_problem<TestType>(10, 20, {.query_offset = 45});
    const Expected due = expected(M, problem);
    Matrix<TestType> out(10, 3);
    const auto status =
        phiattn::attention(cosformer<TestType>(M), problem.q, problem.k, problem.v, out, problem.options);
    CHECK(status.nonpositive_rows == (due.sign.array() < 0).count());
    CHECK((M >= 130) == status.ok());
    CHECK(error(out, due) <= 1);
  }
}
