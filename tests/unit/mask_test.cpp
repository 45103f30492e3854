// Masks: what a kernel makes of them is what they say index by index, whatever lies in the keys that are hidden.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include <limits>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;
using phiattn::AllKeys;
using phiattn::BandMask;
using phiattn::CausalMask;
using phiattn::KeyRange;

namespace {

/// Runs that jump about, some of them empty.
struct JumpingMask {
  KeyRange keys(Index row, Index n_k) const {
    const Index begin = (row * 37) % n_k;
    const Index end = std::min(n_k, begin + (row * 11) % 50);
    return end > begin ? KeyRange{begin, end} : KeyRange{0, 0};
  }
};

static_assert(phiattn::Mask<JumpingMask> && !phiattn::PrefixMask<JumpingMask>);
static_assert(phiattn::PrefixMask<CausalMask> && phiattn::PrefixMask<AllKeys>);
static_assert(!phiattn::PrefixMask<BandMask>);

template <class S, class K, class M>
void check_mask(const K& kernel, const oracle::Similarity& formula, const M& mask) {
  for (const auto& [n_q, n_k] : {std::pair<Index, Index>{1, 1}, {90, 130}, {130, 90}}) {
    for (const Index chunk : {5, 32, 128}) {
      CAPTURE(kSeed, n_q, n_k, chunk);
      const auto [q, k, v, options, none] = gaussian_problem<S>({n_q, n_k, 5, 3}, {.chunk = chunk});
      Matrix<S> out(n_q, 3);
      phiattn::attention(kernel, q, k, v, out, mask, options);
      const auto due = oracle::attend(formula, q.template cast<Real>(), k.template cast<Real>(),
                                      v.template cast<Real>(), options, oracle::sees(mask, n_k));
      CHECK(error(out, due) <= 1);

      // A row that does not see key j does not see what is in it.
      auto [other_k, other_v] = std::pair(k, v);
      const Index j = n_k / 2;
      other_k.row(j).setConstant(std::numeric_limits<S>::quiet_NaN());
      other_v.row(j).setConstant(std::numeric_limits<S>::infinity());
      Matrix<S> other(n_q, 3);
      phiattn::attention(kernel, q, other_k, other_v, other, mask, options);
      for (Index i = 0; i < n_q; ++i) {
        if (!oracle::sees(mask, n_k)(i, j)) CHECK(other.row(i).allFinite());
      }
    }
  }
}

template <class S, class M>
void check_mask(const M& mask) {
  check_mask<S>(phiattn::ExponentialKernel<S>(), oracle::exponential(), mask);
  check_mask<S>(phiattn::PolynomialKernel<S>::taylor(2), oracle::taylor(2), mask);
}

}  // namespace

TEMPLATE_TEST_CASE("a kernel sees what a mask shows it, index by index", "[mask]", float, double) {
  SECTION("all") { check_mask<TestType>(AllKeys()); }
  SECTION("causal") {
    for (const Index offset : {-200, -7, 0, 40, 200}) check_mask<TestType>(CausalMask{offset});
  }
  SECTION("bands") {
    for (const auto& [first, last] :
         {std::pair<Index, Index>{0, 1}, {-7, 1}, {-64, 65}, {3, 3}, {-300, -200}}) {
      check_mask<TestType>(BandMask{first, last});
    }
  }
  SECTION("one's own") { check_mask<TestType>(JumpingMask()); }
}

TEST_CASE("masks are what their inequalities say, key by key", "[mask]") {
  const auto check = [](const auto& mask, const auto& shows) {
    for (const Index n_k : {0, 1, 9}) {
      for (Index row = 0; row < 12; ++row) {
        const auto [begin, end] = mask.keys(row, n_k);
        CAPTURE(n_k, row, begin, end);
        CHECK((0 <= begin && begin <= end && end <= n_k));
        for (Index j = 0; j < n_k; ++j) CHECK((begin <= j && j < end) == shows(row, j));
      }
    }
  };
  check(AllKeys(), [](Index, Index) { return true; });
  for (Index offset = -14; offset <= 10; ++offset) {
    check(CausalMask{offset}, [=](Index i, Index j) { return j <= i + offset; });
    for (Index length = 0; length <= 5; ++length) {
      check(BandMask{offset, offset + length},
            [=](Index i, Index j) { return i + offset <= j && j < i + offset + length; });
    }
  }
}

TEST_CASE("a call with a mask says no to what the mask says") {
  const auto [q, k, v, options, none] = gaussian_problem<float>({4, 4, 3, 2});
  Matrix<float> out(4, 2);
  const phiattn::ExponentialKernel<float> softmax;
  CHECK_THROWS_WITH(phiattn::attention(softmax, q, k, v, out, AllKeys(), {.causality = Causality::causal}),
                    Catch::Contains("causality"));
  CHECK_THROWS_WITH(phiattn::attention(softmax, q, k, v, out, AllKeys(), {.query_offset = 1}),
                    Catch::Contains("query_offset"));
  CHECK_THROWS_WITH(phiattn::attention(softmax, q, k.topRows(3), v, out, AllKeys()),
                    Catch::Contains("rows of v: got 4, expected 3"));
}

namespace {

/// Prefixes that grow in steps, some of none.
struct StairMask {
  static constexpr bool kPrefix = true;
  KeyRange keys(Index row, Index n_k) const { return {0, std::min<Index>(row / 7 * 10, n_k)}; }
};

/// Says that it is a prefix.
struct ShrinkingMask {
  static constexpr bool kPrefix = true;
  KeyRange keys(Index row, Index n_k) const { return {0, std::max<Index>(n_k - row, 0)}; }
};

}  // namespace

TEMPLATE_TEST_CASE("a feature map takes a prefix mask: each row as over its own keys alone", "[mask]", float,
                   double) {
  using S = TestType;
  const auto [q, k, v, options, none] = gaussian_problem<S>({90, 70, 5, 3}, {.chunk = 16});
  const phiattn::EluFeatures<S> elu(5);
  const auto check = [&, &q = q, &k = k, &v = v](const auto& mask) {
    Matrix<S> out(q.rows(), 3);
    phiattn::attention(elu, q, k, v, out, mask);
    for (Index t = 0; t < q.rows(); ++t) {
      const Index end = mask.keys(t, k.rows()).end;
      const Matrix<S> due = phiattn::attention(elu, q.row(t), k.topRows(end), v.topRows(end));
      CHECK((out.row(t) - due).cwiseAbs().maxCoeff() <= 100 * std::numeric_limits<S>::epsilon());
    }
  };
  check(AllKeys());
  check(CausalMask{-9});
  check(StairMask());
  Matrix<S> out(q.rows(), 3);
  CHECK_THROWS_WITH(phiattn::attention(elu, q, k, v, out, ShrinkingMask()),
                    ContainsSubstring("is none at row 1"));
}
