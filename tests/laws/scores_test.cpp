// Masks, biases, caps, sinks and key weights: what attention makes of them is what the formula says, written out in
// support/scores.hpp, however the call is made and whatever lies in keys that are hidden.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/kernels/with.hpp>

#include <functional>
#include <string>

#include "support/catch.hpp"
#include "support/problem.hpp"
#include "support/scores.hpp"

using namespace laws;
using phiattn::Alignment;

namespace {

constexpr Index kDimension = 5;
constexpr Index kValues = 3;

template <class K>
struct Rule {
  std::string name;
  std::function<phiattn::ModifiedKernel<K>(const phiattn::ModifiedKernel<K>&)> write;
  std::function<void(Meaning&)> mean;
};

/// For a call of n_q queries and n_k keys: the modifiers that every kernel takes.
template <class K>
std::vector<Rule<K>> masks(Index n_q, Index n_k) {
  using M = phiattn::ModifiedKernel<K>;
  std::vector<Rule<K>> rules;
  for (const auto& sides : {std::pair<Index, Index>{7, 0}, {0, 0}, {3, 5}, {40, 1000}}) {
    const Index left = sides.first, right = sides.second;
    rules.push_back({"window " + std::to_string(left) + ", " + std::to_string(right),
                     [=](const M& k) {
                       return phiattn::with(k, phiattn::SlidingWindow{left, right});
                     },
                     [=](Meaning& m) {
                       m.masks.push_back([=](const Pair& p) {
                         return p.key_position >= p.query_position - left &&
                                p.key_position <= p.query_position + right;
                       });
                     }});
  }
  const Matrix<bool> seen = gaussian<double>(n_q, n_k, kSeed + 20)
                                .unaryExpr([](double x) { return x > 0.3; })
                                .template cast<bool>();
  rules.push_back(
      {"boolean mask", [=](const M& k) { return phiattn::with(k, phiattn::BooleanMask(seen)); },
       [=](Meaning& m) { m.masks.push_back([=](const Pair& p) { return seen(p.query, p.key_row); }); }});
  for (const bool scattered : {false, true}) {
    std::vector<int> ids;
    for (Index j = 0; j < n_k; ++j) ids.push_back(static_cast<int>(scattered ? j * 7 % 3 : 50 - j / 9));
    rules.push_back({scattered ? "scattered documents" : "documents",
                     [=](const M& k) { return phiattn::with(k, phiattn::Documents(ids)); },
                     [=](Meaning& m) {
                       m.masks.push_back([=](const Pair& p) {
                         const auto id = [&](Index row) { return ids[static_cast<std::size_t>(row)]; };
                         return p.query_row >= 0 && p.query_row < n_k && id(p.query_row) == id(p.key_row);
                       });
                     }});
  }
  rules.push_back({"prefix", [](const M& k) { return phiattn::with(k, phiattn::PrefixCausal{20}); },
                   [](Meaning& m) { m.prefix = 20; }});
  rules.push_back(
      {"mask function",
       [](const M& k) { return phiattn::with(k, [](Index i, Index j) { return (i + 2 * j) % 5 != 0; }); },
       [](Meaning& m) {
         m.masks.push_back([](const Pair& p) { return (p.query_position + 2 * p.key_position) % 5 != 0; });
       }});
  return rules;
}

/// Those that only positive kernels take.
template <class K>
std::vector<Rule<K>> scores(Index n_q, Index n_k) {
  using M = phiattn::ModifiedKernel<K>;
  std::vector<Rule<K>> rules;
  rules.push_back({"alibi", [](const M& k) { return phiattn::with(k, phiattn::Alibi{0.125}); },
                   [](Meaning& m) {
                     m.biases.push_back([](const Pair& p) {
                       return -Real(0.125) * static_cast<Real>(std::abs(p.query_position - p.key_position));
                     });
                   }});
  rules.push_back({"cap", [](const M& k) { return phiattn::with(k, phiattn::SoftCap{0.5}); },
                   [](Meaning& m) { m.cap = Real(0.5); }});
  Matrix<double> bias = gaussian<double>(n_q, n_k, kSeed + 21);
  rules.push_back({"bias", [=](const M& k) { return phiattn::with(k, phiattn::Bias(bias)); },
                   [=](Meaning& m) {
                     m.biases.push_back([=](const Pair& p) { return Real(bias(p.query, p.key_row)); });
                   }});
  for (Index e = 0; e < bias.size(); e += 3) bias(e) = -INFINITY;
  if (n_q > 2) bias.row(2).setConstant(-INFINITY);
  rules.push_back({"bias that hides", [=](const M& k) { return phiattn::with(k, phiattn::Bias(bias)); },
                   [=](Meaning& m) {
                     m.biases.push_back([=](const Pair& p) { return Real(bias(p.query, p.key_row)); });
                   }});
  const Vector<double> any_gates = gaussian<double>(n_k, 1, kSeed + 22), decay = -any_gates.cwiseAbs();
  const auto push_gates = [&](const std::string& name, const Vector<double>& gates) {
    rules.push_back({name, [=](const M& k) { return phiattn::with(k, phiattn::Forgetting(gates)); },
                     [=](Meaning& m) { m.log_decay.assign(gates.begin(), gates.end()); }});
  };
  push_gates("forgetting", decay);
  push_gates("gates of any sign", any_gates);
  rules.push_back({"bias function",
                   [](const M& k) {
                     return phiattn::with(k, [](Index i, Index j) {
                       return (i + j) % 4 == 0 ? -INFINITY : 0.1 * static_cast<double>((i * 3 + j) % 7);
                     });
                   },
                   [](Meaning& m) {
                     m.biases.push_back([](const Pair& p) {
                       const Index i = p.query_position, j = p.key_position;
                       return (i + j) % 4 == 0 ? -oracle::kInfinity
                                               : Real(0.1) * static_cast<Real>((i * 3 + j) % 7);
                     });
                   }});
  for (const double logit : {0.75, 300.0, -300.0}) {
    rules.push_back({"sink " + std::to_string(logit),
                     [=](const M& k) { return phiattn::with(k, phiattn::Sink{logit}); },
                     [=](Meaning& m) { m.sink = logit; }});
  }
  return rules;
}

/// Rules by themselves, and some together; of a kernel that takes them all.
template <class K>
std::vector<std::vector<Rule<K>>> combinations(Index n_q, Index n_k) {
  std::vector<Rule<K>> all = masks<K>(n_q, n_k);
  if constexpr (phiattn::LogKernel<K>) {
    for (auto& rule : scores<K>(n_q, n_k)) all.push_back(rule);
  }
  std::vector<std::vector<Rule<K>>> sets{{}};
  for (const auto& rule : all) sets.push_back({rule});
  const auto named = [&](std::vector<std::string> names) {
    std::vector<Rule<K>> some;
    for (const auto& name : names) {
      for (const auto& rule : all) {
        if (rule.name == name) some.push_back(rule);
      }
    }
    if (some.size() == names.size()) sets.push_back(some);
  };
  named({"window 40, 1000", "scattered documents"});
  named({"prefix", "documents", "window 7, 0"});
  named({"sink 0.750000", "boolean mask", "alibi", "cap"});
  named({"bias", "forgetting", "cap", "window 7, 0"});
  named({"bias that hides", "mask function", "alibi", "prefix"});
  named({"forgetting", "scattered documents", "bias function"});
  return sets;
}

template <class K>
std::string names(const std::vector<Rule<K>>& rules) {
  std::string all;
  for (const auto& rule : rules) all += rule.name + "; ";
  return all;
}

template <class K>
phiattn::ModifiedKernel<K> written(const K& kernel, const std::vector<Rule<K>>& rules) {
  auto modified = phiattn::with(kernel);
  for (const auto& rule : rules) modified = rule.write(modified);
  return modified;
}

template <class K>
Meaning meaning(const std::vector<Rule<K>>& rules) {
  Meaning all;
  for (const auto& rule : rules) rule.mean(all);
  return all;
}

std::vector<AttentionOptions> all_options() {
  return {{},
          {.scale = 0.7, .query_offset = 4},
          {.query_offset = -30},
          {.causality = Causality::causal},
          {.causality = Causality::causal, .query_offset = 7},
          {.causality = Causality::causal, .scale = 2, .alignment = Alignment::first}};
}

/// No keys, one, blocks, alternate ones; none of the first, the last, any. And weights of which each may be all that counts.
template <class S>
std::vector<Vector<S>> paddings(Index n_k) {
  std::vector<Vector<S>> all{Vector<S>()};
  for (const auto& missing : std::vector<std::function<bool(Index)>>{
           [](Index) { return false; }, [](Index j) { return j % 2 == 0; },
           [=](Index j) { return j >= n_k - 20; }, [](Index j) { return j < 11; },
           [](Index j) { return j / 9 % 3 == 1; }, [](Index j) { return j != 40; },
           [](Index) { return true; }}) {
    Vector<S> weights = gaussian<S>(n_k, 1, kSeed + 3);
    for (Index j = 0; j < n_k; ++j) {
      if (missing(j)) weights(j) = -std::numeric_limits<S>::infinity();
    }
    all.push_back(weights);
  }
  all.push_back(100 * gaussian<S>(n_k, 1, kSeed + 4));
  return all;
}

template <class S>
void poison(Problem<S>& problem, Index j) {
  problem.k.row(j).setConstant(std::numeric_limits<S>::quiet_NaN());
  problem.v.row(j).setConstant(std::numeric_limits<S>::infinity());
}

template <class S, class K>
void check_formula(const K& kernel, const oracle::Similarity& formula) {
  for (const auto& [n_q, n_k] :
       {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {2, 1}, {1, 40}, {90, 150}, {150, 90}}) {
    for (const AttentionOptions& options : all_options()) {
      for (const auto& rules : combinations<K>(n_q, n_k)) {
        auto problem = gaussian_problem<S>({n_q, n_k, kDimension, kValues}, options);
        const auto modified = written(kernel, rules);
        const Expected due = expected(formula, meaning(rules), problem);
        for (const Index chunk : {7, 64, 1000}) {
          CAPTURE(n_q, n_k, chunk, names(rules), options.causality == Causality::causal,
                  options.query_offset.value_or(-99), options.alignment == Alignment::first);
          problem.options.chunk = chunk;
          const auto& [q, k, v, of_call, none] = problem;
          CHECK(error<S>(phiattn::attention(modified, q, k, v, of_call), due) <= 1);
          if (chunk != 64) continue;
          phiattn::Partial<S> partial;
          phiattn::attention(modified, q, k, v, partial, of_call);
          CHECK(error(partial, due) <= 1);
          CHECK(weight_error<S>(phiattn::attention_weights(modified, q, k, of_call), due) <= 1);
        }
      }
    }
  }
}

template <class S, class K>
void check_hidden(const K& kernel, const oracle::Similarity& formula) {
  const Index n_q = 60, n_k = 100;
  for (const AttentionOptions& options : all_options()) {
    for (const auto& rules : combinations<K>(n_q, n_k)) {
      auto problem = gaussian_problem<S>({n_q, n_k, kDimension, kValues}, options);
      problem.options.chunk = 32;
      const auto modified = written(kernel, rules);
      const Expected clean = expected(formula, meaning(rules), problem);
      for (const Index j : {0, 5, 41, 99}) {
        CAPTURE(j, names(rules));
        auto other = problem;
        poison(other, j);
        const Matrix<S> out = phiattn::attention(modified, other.q, other.k, other.v, other.options);
        Expected unseen = clean;
        std::erase_if(unseen.rows, [&](Index i) { return clean.weights(i, j) != 0; });
        CHECK(error(out, unseen) <= 1);
        for (Index i = 0; i < n_q; ++i) {
          if (clean.weights(i, j) > 1e-6) CHECK(!out.row(i).allFinite());
        }
      }
    }
  }
}

template <class S, class K>
void check_padding(const K& kernel, const oracle::Similarity& formula) {
  for (const auto& [n_q, n_k] : {std::pair<Index, Index>{1, 1}, {50, 70}, {70, 50}}) {
    for (const AttentionOptions& options : all_options()) {
      for (const Vector<S>& weights : paddings<S>(n_k)) {
        for (const auto& rules : combinations<K>(n_q, n_k)) {
          auto problem = gaussian_problem<S>({n_q, n_k, kDimension, kValues}, options);
          problem.log_weights = weights;
          const Expected due = expected(formula, meaning(rules), problem);
          for (Index j = 0; j < weights.size(); ++j) {
            if (weights(j) == -std::numeric_limits<S>::infinity()) poison(problem, j);
          }
          const auto modified = written(kernel, rules);
          const auto& [q, k, v, of_call, none] = problem;
          problem.options.chunk = 32;
          CAPTURE(n_q, n_k, names(rules), weights.transpose(), options.causality == Causality::causal,
                  options.query_offset.value_or(-99), options.alignment == Alignment::first);
          if (weights.size() == 0) {
            CHECK(error<S>(phiattn::attention(modified, q, k, v, of_call), due) <= 1);
            continue;
          }
          phiattn::Partial<S> partial;
          phiattn::attention(modified, q, phiattn::weighted(k, weights), v, partial, of_call);
          CHECK(error(partial, due) <= 1);
          const RowVector<S> row = weights.transpose();
          CHECK(weight_error<S>(phiattn::attention_weights(modified, q, phiattn::weighted(k, row), of_call),
                                due) <= 1);
        }
      }
    }
  }
}

/// A cache of any blocks, token by token, merged, and read, against the one causal call.
template <class S, class K>
void check_cache(const K& kernel, const oracle::Similarity& formula) {
  const Index n = 80;
  for (const auto& rules : combinations<K>(n, n)) {
    const Meaning sense = meaning(rules);
    if (sense.prefix) continue;
    const auto modified = written(kernel, rules);
    const auto problem = gaussian_problem<S>({n, n, kDimension, kValues}, {.causality = Causality::causal});
    const auto& [q, k, v, options, none] = problem;
    const Expected due = expected(formula, sense, problem);
    for (const Index block : {1, 7, 64, 80}) {
      CAPTURE(names(rules), block);
      phiattn::KeyValueCache<phiattn::ModifiedKernel<K>> cache(modified, kValues, {.chunk = 16});
      Matrix<S> out(n, kValues);
      for (Index t = 0; t < n; t += block) {
        const Index rows = std::min(block, n - t);
        cache.advance(q.middleRows(t, rows), k.middleRows(t, rows), v.middleRows(t, rows),
                      out.middleRows(t, rows));
      }
      CHECK(error(out, due) <= 1);
    }
    // The last part of a sequence, which another machine holds; and what it reads from there.
    CAPTURE(names(rules));
    const Index held = 50, rest = n - held;
    phiattn::KeyValueCache<phiattn::ModifiedKernel<K>> near(modified, kValues), far = near;
    far.append(k.topRows(held), v.topRows(held));
    Matrix<S> out(rest, kValues);
    near.append(k.bottomRows(rest), v.bottomRows(rest), {.first = held});
    near.merge(far);
    Problem<S> last = problem;
    last.q = q.bottomRows(1);
    Expected of_last = due;
    of_last.rows = {n - 1};
    Matrix<S> read(n, kValues);
    read.bottomRows(1) = near.read(last.q, n - 1);
    CHECK(error(read, of_last) <= 1);
    phiattn::Partial<S> both =
        phiattn::combine(near.read_partial(last.q, n - 1), phiattn::Partial<S>::empty(1, kValues));
    if (sense.sink) phiattn::join_sink(both, static_cast<double>(*sense.sink));
    read.bottomRows(1) = both.out;
    CHECK(error(read, of_last) <= 1);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("modified scores are what the formula says", "[laws]", float, double) {
  check_formula<TestType>(phiattn::ExponentialKernel<TestType>(), oracle::exponential());
}

TEMPLATE_TEST_CASE("a signed kernel takes all masks", "[laws]", float, double) {
  const auto kernel = phiattn::PolynomialKernel<TestType>::taylor(2);
  check_formula<TestType>(kernel, oracle::taylor(2));
  check_hidden<TestType>(kernel, oracle::taylor(2));
  check_padding<TestType>(kernel, oracle::taylor(2));
  check_cache<TestType>(kernel, oracle::taylor(2));
}

TEMPLATE_TEST_CASE("a key that is hidden from a row does not exist for it, whatever it holds", "[laws]",
                   float, double) {
  check_hidden<TestType>(phiattn::ExponentialKernel<TestType>(), oracle::exponential());
}

TEMPLATE_TEST_CASE("a padded key has never existed, under all modifiers", "[laws]", float, double) {
  check_padding<TestType>(phiattn::ExponentialKernel<TestType>(), oracle::exponential());
}

TEMPLATE_TEST_CASE("a cache of a modified kernel gives what the one causal call gives", "[laws]", float,
                   double) {
  check_cache<TestType>(phiattn::ExponentialKernel<TestType>(), oracle::exponential());
}

TEMPLATE_TEST_CASE("modifiers mean the same in any order of writing", "[laws]", float, double) {
  using S = TestType;
  using K = phiattn::ExponentialKernel<S>;
  const auto [q, k, v, options, none] = gaussian_problem<S>({30, 40, kDimension, kValues});
  for (auto rules : combinations<K>(30, 40)) {
    const Matrix<S> once = phiattn::attention(written(K(), rules), q, k, v, options);
    std::reverse(rules.begin(), rules.end());
    CHECK(phiattn::maximal_error(phiattn::attention(written(K(), rules), q, k, v, options), once) < 1e-6);
  }
}
