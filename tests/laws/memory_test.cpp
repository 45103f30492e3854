// The algebra of memories and of partial results: merge, combine, log-weights, copies.

#include <phiattn/attention/partial.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace laws;

namespace {

constexpr Index kQueries = 9;
constexpr Index kKeys = 130;
constexpr Index kDimension = 5;
constexpr Index kValues = 3;
constexpr Shape kShape{kQueries, kKeys, kDimension, kValues};

template <class S>
constexpr S kLogOfZero = -std::numeric_limits<S>::infinity();
template <class S>
constexpr S kNaN = std::numeric_limits<S>::quiet_NaN();

template <class S>
Memory<S> empty_memory(const Case<S>& similarity) {
  return similarity.memory(kDimension, kValues, {.chunk = 16});
}

/// Log-weights of either sign; every fifth key does not exist.
template <class S>
Problem<S> weighted_problem() {
  auto problem = gaussian_problem<S>(kShape);
  problem.log_weights = gaussian<S>(kKeys, 1, kSeed + 3, 2);
  for (Index j = 0; j < kKeys; j += 5) problem.log_weights(j) = kLogOfZero<S>;
  return problem;
}

template <class S, class Keys>
Memory<S> memory_of(const Case<S>& similarity, const Problem<S>& problem, const Keys& keys) {
  auto memory = empty_memory(similarity);
  const Matrix<S> k = problem.k(keys, Eigen::all);
  const Matrix<S> v = problem.v(keys, Eigen::all);
  if (problem.log_weights.size() == 0) {
    memory.append(k, v);
  } else {
    const Vector<S> log_weights = problem.log_weights(keys);
    memory.append(k, v, log_weights);
  }
  return memory;
}

using Parts = std::vector<std::vector<Index>>;

Parts contiguous_parts(std::initializer_list<Index> ends) {
  Parts parts;
  Index begin = 0;
  for (const Index end : ends) {
    parts.emplace_back(static_cast<std::size_t>(end - begin));
    std::iota(parts.back().begin(), parts.back().end(), begin);
    begin = end;
  }
  return parts;
}

Parts random_parts(std::size_t count) {
  std::mt19937_64 random(kSeed);
  Parts parts(count);
  for (Index j = 0; j < kKeys; ++j) parts[random() % count].push_back(j);
  return parts;
}

const std::vector<Parts>& partitions() {
  static const std::vector<Parts> all{contiguous_parts({1, kKeys}),
                                      contiguous_parts({65, kKeys}),
                                      contiguous_parts({63, 64, 64, 129, kKeys}),
                                      random_parts(2),
                                      random_parts(4),
                                      random_parts(40)};
  return all;
}

template <class S>
bool same_bits(const Partial<S>& a, const Partial<S>& b) {
  return laws::same_bits(a.out, b.out) && laws::same_bits<S>(a.log_normaliser, b.log_normaliser) &&
         laws::same_bits<S>(a.sign, b.sign);
}

}  // namespace

TEMPLATE_TEST_CASE("results over the parts of any partition of the keys combine to the whole, in any order",
                   "[laws]", float, double) {
  for (const auto& problem : {gaussian_problem<TestType>(kShape), weighted_problem<TestType>()}) {
    for (const auto& similarity : all_cases<TestType>()) {
      const Expected due = expected(similarity, problem);
      for (std::size_t p = 0; p < partitions().size(); ++p) {
        CAPTURE(similarity.name, kSeed, problem.log_weights.size(), p);
        auto forwards = Partial<TestType>::empty(kQueries, kValues);
        auto backwards = forwards;
        for (const auto& keys : partitions()[p]) {
          const auto part = memory_of(similarity, problem, keys).read_partial(problem.q);
          forwards = combine(forwards, part);
          backwards = combine(part, backwards);
        }
        CHECK(error(forwards, due) <= 1);
        CHECK(error(backwards, due) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("memories of the parts of any partition merge to the whole, in any order", "[laws]", float,
                   double) {
  for (const auto& problem : {gaussian_problem<TestType>(kShape), weighted_problem<TestType>()}) {
    for (const auto& similarity : all_cases<TestType>()) {
      const Expected due = expected(similarity, problem);
      for (std::size_t p = 0; p < partitions().size(); ++p) {
        CAPTURE(similarity.name, kSeed, problem.log_weights.size(), p);
        auto forwards = empty_memory(similarity);
        auto backwards = forwards;
        for (const auto& keys : partitions()[p]) {
          auto part = memory_of(similarity, problem, keys);
          forwards.merge(part);
          part.merge(backwards);
          backwards = part;
        }
        CHECK(forwards.size() == kKeys - (problem.log_weights.array() == kLogOfZero<TestType>).count());
        CHECK(error(forwards.read_partial(problem.q), due) <= 1);
        CHECK(error(backwards.read_partial(problem.q), due) <= 1);
      }
    }
  }
}

TEMPLATE_TEST_CASE("merge is associative and commutative", "[laws]", float, double) {
  const auto problem = weighted_problem<TestType>();
  for (const auto& similarity : all_cases<TestType>()) {
    const Expected due = expected(similarity, problem);
    std::array<int, 3> order{0, 1, 2};
    do {
      CAPTURE(similarity.name, kSeed, order);
      std::vector<Memory<TestType>> parts;
      for (const int p : order) {
        parts.push_back(
            memory_of(similarity, problem, contiguous_parts({7, 64, kKeys})[static_cast<std::size_t>(p)]));
      }
      auto left = parts[0];  // (a + b) + c
      left.merge(parts[1]);
      left.merge(parts[2]);
      auto right = parts[0];  // a + (b + c)
      parts[1].merge(parts[2]);
      right.merge(parts[1]);
      CHECK(error(left.read_partial(problem.q), due) <= 1);
      CHECK(error(right.read_partial(problem.q), due) <= 1);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEMPLATE_TEST_CASE("an empty memory reads 0, is the identity of merge, and its result that of combine",
                   "[laws]", float, double) {
  const auto problem = gaussian_problem<TestType>(kShape);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    const auto empty = empty_memory(similarity);
    const auto nothing = Partial<TestType>::empty(kQueries, kValues);
    CHECK(empty.size() == 0);
    CHECK(same_bits(empty.read_partial(problem.q), nothing));
    CHECK(same_bits(combine(nothing, nothing), nothing));

    auto full = empty;
    full.append(problem.k, problem.v);
    auto whole = full.read_partial(problem.q);
    auto left = empty;
    left.merge(full);
    full.merge(empty);
    CHECK(same_bits(left.read_partial(problem.q), whole));
    CHECK(same_bits(full.read_partial(problem.q), whole));

    whole.sums.row(2).setConstant(kNaN<TestType>);  // what a query that is not finite would give
    whole.normaliser(2) = kNaN<TestType>;
    whole.divide();
    CHECK(std::isnan(whole.log_normaliser(2)));
    for (const auto& both : {combine(nothing, whole), combine(whole, nothing)}) {
      CHECK(both.out.row(2).array().isNaN().all());
      CHECK(std::isnan(both.log_normaliser(2)));
      for (const Index i : {0, 1, 3, 8}) {
        CHECK(both.out.row(i) == whole.out.row(i));
        CHECK(both.log_normaliser(i) == whole.log_normaliser(i));
        CHECK(both.sign(i) == whole.sign(i));
      }
    }
  }
}

TEMPLATE_TEST_CASE("a log-weight w multiplies the similarities of its key by e^w", "[laws]", float, double) {
  const auto problem = weighted_problem<TestType>();
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    auto memory = empty_memory(similarity);
    memory.append(problem.k, problem.v, problem.log_weights.transpose());  // a row will do
    CHECK(error(memory.read_partial(problem.q), expected(similarity, problem)) <= 1);
  }
}

TEMPLATE_TEST_CASE("a key of log-weight ln 2 is a key that comes twice", "[laws]", float, double) {
  const auto problem = gaussian_problem<TestType>(kShape);
  auto weighted = problem;
  weighted.log_weights = Vector<TestType>::Constant(kKeys, std::numbers::ln2_v<TestType>);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    auto memory = empty_memory(similarity);
    memory.append(problem.k, problem.v);
    memory.append(problem.k, problem.v);
    CHECK(error(memory.read_partial(problem.q), expected(similarity, weighted)) <= 1);
  }
}

TEMPLATE_TEST_CASE("a key of log-weight -inf does not exist, whatever it holds", "[laws]", float, double) {
  const auto problem = weighted_problem<TestType>();
  for (const TestType garbage :
       {kNaN<TestType>, -kLogOfZero<TestType>, std::numeric_limits<TestType>::max()}) {
    auto [q, k, v, options, log_weights] = problem;
    for (Index j = 0; j < kKeys; ++j) {
      if (log_weights(j) != kLogOfZero<TestType>) continue;
      k.row(j).setConstant(garbage);
      v.row(j).setConstant(-garbage);
    }
    for (const auto& similarity : all_cases<TestType>()) {
      CAPTURE(similarity.name, kSeed, garbage);
      auto memory = empty_memory(similarity);
      memory.append(k, v, log_weights);
      CHECK(error(memory.read_partial(q), expected(similarity, problem)) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("a memory of keys that do not exist reads as an empty one, and goes on", "[laws]", float,
                   double) {
  const auto problem =
      gaussian_problem<TestType>({kKeys, kKeys, kDimension, kValues}, {.causality = Causality::causal});
  const auto& [q, k, v, options, none] = problem;
  const Vector<TestType> log_weights = Vector<TestType>::Constant(kKeys, kLogOfZero<TestType>);
  const Matrix<TestType> garbage = Matrix<TestType>::Constant(kKeys, kDimension, kNaN<TestType>);
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    auto memory = empty_memory(similarity);
    memory.append(garbage, v, log_weights);
    CHECK(same_bits(memory.read_partial(q), Partial<TestType>::empty(kKeys, kValues)));
    CHECK(error(memory.advance(q, k, v), expected(similarity, problem)) <= 1);
  }
}

TEMPLATE_TEST_CASE("a copy of a memory goes on like the original, and apart from it", "[laws]", float,
                   double) {
  const auto [q, k, v, options, none] = gaussian_problem<TestType>({kKeys, kKeys, kDimension, kValues});
  for (const auto& similarity : all_cases<TestType>()) {
    CAPTURE(similarity.name, kSeed);
    auto original = empty_memory(similarity);
    original.advance(q.topRows(65), k.topRows(65), v.topRows(65));
    const auto kept = original.read_partial(q);
    auto copy = original;
    const Matrix<TestType> out = copy.advance(q.bottomRows(65), k.bottomRows(65), v.bottomRows(65));
    CHECK(original.size() == 65);
    CHECK(same_bits(original.read_partial(q), kept));
    CHECK(laws::same_bits(original.advance(q.bottomRows(65), k.bottomRows(65), v.bottomRows(65)), out));
    CHECK(same_bits(original.read_partial(q), copy.read_partial(q)));
  }
}

TEMPLATE_TEST_CASE("two equal calls give the same bits", "[laws]", float, double) {
  auto problem = gaussian_problem<TestType>({kKeys, kKeys, kDimension, kValues});
  for (const auto& similarity : all_cases<TestType>()) {
    for (const Causality causality : {Causality::none, Causality::causal}) {
      CAPTURE(similarity.name, kSeed, causality);
      problem.options.causality = causality;
      CHECK(laws::same_bits(attend(similarity, problem), attend(similarity, problem)));
    }
  }
}
