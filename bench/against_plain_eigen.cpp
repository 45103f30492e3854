// The main cases beside the same written in plain Eigen and beside the machine's own peak, all three in turn, so that
// whatever else the machine does falls on all of them.
//
//     against_plain_eigen [--brief] [--check=RATIO]
//
// Medians of CPU time on one thread; nobody pays for the pages of fresh buffers. FLOPs are nominal (see
// attention_bench.cpp). --brief: seconds; --check: fails if a case marked * is not RATIO times as fast as plain Eigen.

#include "support/machine.hpp"
#include "support/plain_eigen.hpp"
#include "support/timed.hpp"

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/fitting/balancing.hpp>
#include <phiattn/fitting/k_means.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/with.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>
#include <phiattn/reparametrisation/reparametrisation.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace pa = phiattn;
using pa::Index;
using pa::Matrix;

struct Settings {
  int rounds = 31;
  bool brief = false;
  double least_ratio = 0;
};

template <class S>
struct Problem {
  Problem(Index n, Index d, Index dv)
      : q(Matrix<S>::Random(n, d)), k(Matrix<S>::Random(n, d)), v(Matrix<S>::Random(n, dv)), out(n, dv) {}
  Matrix<S> q, k, v, out, plain_out;
};

class Table {
 public:
  explicit Table(const Settings& settings) : settings_(settings) {
    std::printf("%-38s %10s %12s %9s %8s %10s %9s\n", "case", "median ms", "tokens/s", "GFLOP/s", "of peak",
                "heap KiB", "x plain");
  }

  /// @param judged  whether --check looks at it
  template <class S>
  void add(const std::string& name, Index tokens, double flops, bool judged,
           const std::function<void()>& ours, const std::function<void()>& plain) {
    const std::int64_t heap = bench::working_memory(ours);
    const bench::Comparison it = bench::compare<S>(settings_.rounds, flops, ours, plain);
    const bool fails = judged && it.times_as_fast < settings_.least_ratio;
    failed_ = failed_ || fails;
    std::printf("%-36s%s %10.4f %12.3g %9.1f %8.2f %10.0f %9.2f%s\n", name.c_str(), judged ? " *" : "  ",
                it.seconds * 1e3, static_cast<double>(tokens) / it.seconds, flops / it.seconds / 1e9,
                it.of_peak, static_cast<double>(heap) / 1024, it.times_as_fast,
                fails ? "  BELOW --check" : "");
    std::fflush(stdout);
  }

  bool failed() const { return failed_; }

 private:
  Settings settings_;
  bool failed_ = false;
};

std::string named(const char* what, bool causal, Index n) {
  return std::string(what) + (causal ? ", causal" : ", full") + ", n = " + std::to_string(n);
}

pa::AttentionOptions options(bool causal) {
  return {.causality = causal ? pa::Causality::causal : pa::Causality::none};
}

template <class S>
void linear(Table& table, const char* what, Index n, bool causal, bool judged = false,
            const pa::ProjectionOptions& frequencies = {.antithetic = false}, Index d = 64, Index m = 256) {
  Problem<S> p(n, d, d);
  const pa::PositiveRandomFeatures<S> favor(pa::sample_projection<S>(m, d, frequencies));
  const Matrix<S> omega = favor.projection().matrix();
  table.add<S>(
      named(what, causal, n), n, 8.0 * static_cast<double>(n * m * d), judged,
      [&] { pa::attention(favor, p.q, p.k, p.v, p.out, options(causal)); },
      [&] { p.plain_out = bench::plain::favor<S>(omega, p.q, p.k, p.v, causal); });
}

template <class S>
void exact(Table& table, const char* what, Index n, bool causal, bool judged = false, Index d = 64) {
  Problem<S> p(n, d, d);
  table.add<S>(
      named(what, causal, n), n, 4.0 * static_cast<double>(n * n * d) / (causal ? 2 : 1), judged,
      [&] { pa::attention(pa::ExponentialKernel<S>(), p.q, p.k, p.v, p.out, options(causal)); },
      [&] { p.plain_out = bench::plain::softmax<S>(p.q, p.k, p.v, causal); });
}

void elu(Table& table, Index n, bool causal) {
  Problem<float> p(n, 64, 64);
  table.add<float>(
      named("elu + 1", causal, n), n, 4.0 * static_cast<double>(n * 64 * 64), false,
      [&] { pa::attention(pa::EluFeatures<float>(64), p.q, p.k, p.v, p.out, options(causal)); },
      [&] { p.plain_out = bench::plain::elu<float>(p.q, p.k, p.v, causal); });
}

void decode(Table& table, const char* what, bool antithetic) {
  Problem<float> p(1, 64, 64);
  const pa::PositiveRandomFeatures<float> favor(
      pa::sample_projection<float>(256, 64, {.antithetic = antithetic}));
  pa::LinearState state(favor, 64);
  bench::plain::FavorState<float> plain(favor.projection().matrix(), 64);
  p.plain_out.resize(1, 64);
  table.add<float>(
      what, 1, 8.0 * 256 * 64, false, [&] { state.advance(p.q, p.k, p.v, p.out); },
      [&] { plain.advance(p.q, p.k, p.v, p.plain_out); });
}

/// The least n, in steps of 64, from which on random features (m = 256) take less time than exact attention.
void crossover(const Settings& settings, bool causal) {
  const pa::PositiveRandomFeatures<float> favor(pa::sample_projection<float>(256, 64, {.antithetic = false}));
  Index least = 0;
  for (Index n = 4096; n >= 64; n = n > 1024 ? n - 256 : n - 64) {
    Problem<float> p(n, 64, 64);
    bench::Timed linear([&] { pa::attention(favor, p.q, p.k, p.v, p.out, options(causal)); });
    bench::Timed exact(
        [&] { pa::attention(pa::ExponentialKernel<float>(), p.q, p.k, p.v, p.out, options(causal)); });
    for (int round = 0; round < settings.rounds / 2; ++round) {
      linear.sample();
      exact.sample();
    }
    if (linear.seconds() >= exact.seconds()) break;
    least = n;
  }
  std::printf("linear (m = 256) overtakes exact attention, d = 64, %s: n = %td\n", causal ? "causal" : "full",
              least);
}

/// Time per token of linear attention at the longest n over that at n = 1024.
void growth(const Settings& settings) {
  const pa::PositiveRandomFeatures<float> favor(pa::sample_projection<float>(256, 64, {.antithetic = false}));
  Problem<float> a(1024, 64, 64), b(1 << 20, 64, 64);
  bench::Timed small([&] { pa::attention(favor, a.q, a.k, a.v, a.out); });
  bench::Timed large([&] { pa::attention(favor, b.q, b.k, b.v, b.out); });
  for (int round = 0; round < settings.rounds / 6; ++round) {
    small.sample();
    large.sample();
  }
  std::printf("time per token at n = 1 048 576 over that at n = 1024: %.3f\n",
              large.seconds() / 1024 / small.seconds());
}

/// A sliding window of 128 tokens beside the share of the full call that its pairs of query and key are.
void sliding_window(const Settings& settings) {
  const Index n = 8192, left = 128;
  Problem<float> p(n, 64, 64);
  const pa::ExponentialKernel<float> softmax;
  const auto local = pa::with(softmax, pa::SlidingWindow{left, 0});
  bench::Timed full([&] { pa::attention(softmax, p.q, p.k, p.v, p.out); });
  bench::Timed window([&] { pa::attention(local, p.q, p.k, p.v, p.out); });
  for (int round = 0; round < settings.rounds / 3; ++round) {
    full.sample();
    window.sample();
  }
  const double pairs = static_cast<double>((left + 1) * n - left * (left + 1) / 2);
  const double share = pairs / static_cast<double>(n * n);
  std::printf("sliding window of 128, n = 8192, over its share of the full call's time: %.2f\n",
              window.seconds() / (share * full.seconds()));
}

/// How many times as fast as exact attention the memories are that take its place, each behind a window of 64.
void memories(const Settings& settings, Index n, bool causal) {
  Problem<float> p(n, 64, 64);
  const auto balance = pa::diagonal_balance(p.q, p.k);
  const auto centres = [&](Index count) {
    return pa::k_means(balance.keys(p.k.topRows((std::min)(n, 32 * count))), count);
  };
  const pa::ClosureOptions diagonal{.covariance = pa::Covariance::diagonal};
  const auto call = [&](const auto& similarity) {
    return bench::Timed(
        [&p, similarity, causal] { pa::attention(similarity, p.q, p.k, p.v, p.out, options(causal)); });
  };
  bench::Timed exact = call(pa::ExponentialKernel<float>());
  struct Case {
    const char* name;
    bench::Timed work;
  };
  std::vector<Case> cases;
  cases.push_back({"window of 64", call(pa::Windowed(64, pa::ForgetfulMemory<float>(64)))});
  cases.push_back(
      {"closure, diagonal", call(pa::Windowed(64, pa::GaussianClosure<float>(64, 64, diagonal)))});
  cases.push_back({"16 closures, diagonal",
                   call(pa::Windowed(64, pa::ClosureMixture<float>(centres(16), balance, 64, diagonal)))});
  cases.push_back(
      {"8 of 64 clusters", call(pa::Windowed(64, pa::ClusterMemory<float>(centres(64), balance, 64)))});
  for (int round = 0; round < settings.rounds / 3; ++round) {
    exact.sample();
    for (Case& one : cases) one.work.sample();
  }
  for (const Case& one : cases) {
    std::printf("%-38s %9.2f times as fast as exact attention\n", named(one.name, causal, n).c_str(),
                exact.seconds() / one.work.seconds());
  }
}

void run(const Settings& settings, Table& table) {
  constexpr bool kJudged = true;
  const Index exact_n = settings.brief ? 1024 : 4096;
  for (const bool causal : {false, true}) {
    linear<float>(table, "linear", 8192, causal, kJudged);
    exact<float>(table, "exact", exact_n, causal, kJudged);
    if (settings.brief) continue;
    linear<float>(table, "linear", 2048, causal);
    exact<float>(table, "exact", 1024, causal);
    elu(table, 8192, causal);
    linear<double>(table, "linear, double", 4096, causal);
    exact<double>(table, "exact, double", 2048, causal);
    for (const Index d : {16, 32, 128}) {
      linear<float>(table, ("linear, d = " + std::to_string(d)).c_str(), 4096, causal, false,
                    {.antithetic = false}, d);
      exact<float>(table, ("exact, d = " + std::to_string(d)).c_str(), 2048, causal, false, d);
    }
    for (const Index m : {64, 1024}) {
      linear<float>(table, ("linear, m = " + std::to_string(m)).c_str(), 4096, causal, false,
                    {.antithetic = false}, 64, m);
    }
    linear<float>(table, "linear, d = 72, m = 250", 1000, causal, false, {.antithetic = false}, 72, 250);
  }
  decode(table, "decode one token", false);
  if (settings.brief) return;
  decode(table, "decode one token, antithetic", true);
  linear<float>(table, "linear", 64, false);
  linear<float>(table, "linear, antithetic", 8192, false, false, {.antithetic = true});
  linear<float>(table, "linear, Hadamard", 8192, false, false,
                {.directions = pa::Directions::hadamard, .antithetic = false});
  for (const bool causal : {false, true}) crossover(settings, causal);
  growth(settings);
  sliding_window(settings);
  for (const Index n : {2048, 8192}) {
    for (const bool causal : {false, true}) memories(settings, n, causal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--brief") == 0) {
      settings.brief = true;
      settings.rounds = 11;
    } else if (std::strncmp(argv[i], "--check=", 8) == 0) {
      settings.least_ratio = std::atof(argv[i] + 8);
    } else {
      std::fprintf(stderr, "usage: %s [--brief] [--check=RATIO]\n", argv[0]);
      return 2;
    }
  }
  bench::keep_pages();
  std::printf("%s, FMA peak %.0f GFLOP/s in float, %.0f in double\n", Eigen::SimdInstructionSetsInUse(),
              bench::peak_flops<float>() / 1e9, bench::peak_flops<double>() / 1e9);
  Table table(settings);
  run(settings, table);
  return table.failed() ? 1 : 0;
}
