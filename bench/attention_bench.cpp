// Speed of every similarity over n, d, m, dv and causality, beside what the machine can do and what plain Eigen does.
//
//     attention_bench [--benchmark_filter=REGEX] [--benchmark_format=json] ...
//
// Counters, all by CPU time of the one thread: tokens/s, FLOP/s, peak = fraction of the FMA peak of one core measured at
// the start of this run, heap bytes = working memory, x plain = times as fast as plain Eigen, in turn with it.
// FLOPs are nominal: 4 n_q n_k d for exact attention (half when causal), 2 n m (2 d + 2 dv) for projected features,
// 4 n m dv for features without a projection; exponentials and the triangle of a causal block count nothing.

#include "support/machine.hpp"
#include "support/plain_eigen.hpp"
#include "support/timed.hpp"

#include <phiattn/phiattn.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <type_traits>
#include <utility>

namespace {

namespace pa = phiattn;
using pa::Index;
using pa::Matrix;

struct Shape {
  Index n = 8192;
  Index d = 64;
  Index m = 256;
  Index dv = 64;
  bool causal = false;
};

template <class S>
double fma_peak() {
  static const double peak = bench::peak_flops<S>();
  return peak;
}

template <class S>
struct Problem {
  explicit Problem(const Shape& shape)
      : q(Matrix<S>::Random(shape.n, shape.d)),
        k(Matrix<S>::Random(shape.n, shape.d)),
        v(Matrix<S>::Random(shape.n, shape.dv)),
        out(Matrix<S>::Zero(shape.n, shape.dv)),
        options{.causality = shape.causal ? pa::Causality::causal : pa::Causality::none} {}

  bool causal() const { return options.causality == pa::Causality::causal; }

  Matrix<S> q, k, v, out, plain_out;
  pa::AttentionOptions options;
};

double exact_flops(const Shape& s) {
  const double n = static_cast<double>(s.n);
  return 2 * n * n * static_cast<double>(s.d + s.dv) / (s.causal ? 2 : 1);
}

double feature_flops(const Shape& s, bool projected) {
  return 2.0 * static_cast<double>(s.n * s.m) * static_cast<double>((projected ? 2 * s.d : 0) + 2 * s.dv);
}

/// One benchmark: `step(problem)` is what is timed, beside `plain(problem)` if there is one.
template <class S, class Step, class Plain = std::nullptr_t>
void add(const std::string& name, const Shape& shape, double flops, Step step, Plain plain = nullptr) {
  const std::string full_name = name + (sizeof(S) == 8 ? "<double>" : "") +
                                (shape.causal ? "/causal" : "/full") + "/n:" + std::to_string(shape.n) +
                                "/d:" + std::to_string(shape.d) + "/m:" + std::to_string(shape.m) +
                                "/dv:" + std::to_string(shape.dv);
  benchmark::RegisterBenchmark(full_name.c_str(), [=](benchmark::State& state) mutable {
    Problem<S> problem(shape);
    state.counters["heap bytes"] = static_cast<double>(bench::working_memory([&] { step(problem); }));
    step(problem);  // pages of the buffers are touched before the clock starts
    const std::clock_t start = std::clock();
    for (auto _ : state) {
      step(problem);
      benchmark::ClobberMemory();
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double runs_per_second = static_cast<double>(state.iterations()) / seconds;
    state.counters["tokens/s"] = runs_per_second * static_cast<double>(shape.n);
    state.counters["FLOP/s"] = runs_per_second * flops;
    state.counters["peak"] = runs_per_second * flops / fma_peak<S>();
    if constexpr (!std::is_null_pointer_v<Plain>) {
      constexpr int kRounds = 5;
      state.counters["x plain"] = bench::compare<S>(
                                      kRounds, flops, [&] { step(problem); }, [&] { plain(problem); })
                                      .times_as_fast;
    }
  })->Unit(benchmark::kMillisecond);
}

template <class S, pa::Similarity F>
void add_attention(const std::string& name, const F& similarity, Shape shape) {
  if constexpr (pa::FeatureMap<F>) {
    shape.m = similarity.feature_dimension();
    constexpr bool kProjected = std::is_same_v<F, pa::PositiveRandomFeatures<S>>;
    // One operator for all maps of a kind: it is compiled once.
    add<S>(name, shape, feature_flops(shape, kProjected),
           [map = pa::any_feature_map(similarity)](Problem<S>& p) {
             pa::attention(map, p.q, p.k, p.v, p.out, p.options);
           });
  } else {
    shape.m = 0;
    add<S>(name, shape, exact_flops(shape),
           [similarity](Problem<S>& p) { pa::attention(similarity, p.q, p.k, p.v, p.out, p.options); });
  }
}

template <class S>
pa::PositiveRandomFeatures<S> favor(const Shape& shape, bool antithetic) {
  return pa::PositiveRandomFeatures<S>(
      pa::sample_projection<S>(shape.m, shape.d, {.antithetic = antithetic}));
}

/// What plain Eigen has a counterpart of.
template <class S>
void add_beside_plain(Shape shape) {
  const pa::PositiveRandomFeatures<S> map = favor<S>(shape, false);
  add<S>(
      "favor", shape, feature_flops(shape, true),
      [map](Problem<S>& p) { pa::attention(map, p.q, p.k, p.v, p.out, p.options); },
      [omega = map.projection().matrix()](Problem<S>& p) {
        p.plain_out = bench::plain::favor<S>(omega, p.q, p.k, p.v, p.causal());
      });
  shape.m = 0;
  add<S>(
      "softmax", shape, exact_flops(shape),
      [](Problem<S>& p) { pa::attention(pa::ExponentialKernel<S>(), p.q, p.k, p.v, p.out, p.options); },
      [](Problem<S>& p) { p.plain_out = bench::plain::softmax<S>(p.q, p.k, p.v, p.causal()); });
  shape.m = shape.d;
  add<S>(
      "elu", shape, feature_flops(shape, false),
      [map = pa::EluFeatures<S>(shape.d)](Problem<S>& p) {
        pa::attention(map, p.q, p.k, p.v, p.out, p.options);
      },
      [](Problem<S>& p) { p.plain_out = bench::plain::elu<S>(p.q, p.k, p.v, p.causal()); });
}

/// The other similarities, calibrated where they need it on normal data.
void add_rest(const Shape& shape) {
  const auto add_one = [&](const std::string& name, const auto& similarity) {
    add_attention<float>(name, similarity, shape);
  };
  const auto projected = [&](const std::string& name, const pa::Projection<float>& omega) {
    add_one(name, pa::PositiveRandomFeatures<float>(omega));
  };
  const Index d = shape.d;
  const Index m = shape.m;
  const Problem<float> data({.n = 256, .d = d});
  const auto half = pa::sample_projection<float>(m / 2, d, {.antithetic = false});
  constexpr auto kTaylor = pa::TensorPower::taylor;
  constexpr auto kLimit = pa::TensorPower::exponential_limit;
  projected("favor_simplex", pa::sample_projection<float>(m, d, {.directions = pa::Directions::simplex}));
  projected("favor_hadamard", pa::sample_projection<float>(m, d, {.directions = pa::Directions::hadamard}));
  projected("favor++", pa::favor_plusplus(pa::sample_projection<float>(m, d), -0.1));
  projected("importance", pa::sample_importance_projection<float>(m, data.q, data.k));
  add_one("favor_centred", pa::Reparametrised(favor<float>(shape, true), pa::centring(data.q, data.k)));
  add_one("taylor_2", pa::TensorPowerFeatures<float>(kTaylor, d, 2));
  add_one("exponential_limit_2", pa::TensorPowerFeatures<float>(kLimit, d, 2));
  add_one("tensor_sketch_4", pa::TensorSketchFeatures<float>(kTaylor, d, 4, m));
  add_one("maclaurin_4", pa::RandomMaclaurinFeatures<float>(kTaylor, d, 4, m));
  add_one("trigonometric", pa::TrigonometricFeatures<float>(half));
  add_one("random_fourier", pa::RandomFourierFeatures<float>(half));
  add_one("fourier_pairs", pa::ExponentialPairFeatures<float>(m / 2, d, 0.75));
  add_one("nystrom", pa::NystromFeatures(pa::ExponentialKernel<float>(), pa::sampled_rows(data.k, m, 0)));
  add_one("dijiang", pa::DiJiangFeatures<float>(pa::sample_dijiang_projection<float>(m, d)));
  add_one("relu", pa::relu_features<float>(d));
  add_one("squared_relu", pa::squared_relu_features<float>(d));
  add_one("softplus", pa::softplus_features<float>(d));
  add_one("sigmoid", pa::sigmoid_features<float>(d));
  add_one("dpfp_3", pa::DpfpFeatures<float>(d, 3));
  add_one("hedgehog", pa::HedgehogFeatures<float>(d));
  add_one("cosformer", pa::CosformerFeatures<float>(d, shape.n));
  add_one("uniform", pa::TaylorFeatures<float>(d, 0));
  add_one("gaussian", pa::GaussianKernel<float>(2));
  add_one("cosine", pa::CosineKernel<float>(10));
  add_one("taylor_kernel_2", pa::PolynomialKernel<float>::taylor(2));
}

/// One token against a state of m x dv: `advance` by one row.
template <class S>
void add_decode(Shape shape) {
  shape.n = 1;
  shape.causal = true;
  add<S>(
      "decode_favor", shape, feature_flops(shape, true),
      [state = pa::LinearState(favor<S>(shape, false), shape.dv)](Problem<S>& p) mutable {
        state.advance(p.q, p.k, p.v, p.out);
      },
      [state = bench::plain::FavorState<S>(favor<S>(shape, false).projection().matrix(), shape.dv)](
          Problem<S>& p) mutable {
        p.plain_out.resize(1, p.v.cols());
        state.advance(p.q, p.k, p.v, p.plain_out);
      });
}

std::string giga(double rate, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3g G%s", rate / 1e9, unit);
  return text;
}

/// The machine's own limits head the report, and its JSON context.
void describe_machine() {
  benchmark::AddCustomContext("fma_peak_float", giga(fma_peak<float>(), "FLOP/s"));
  benchmark::AddCustomContext("fma_peak_double", giga(fma_peak<double>(), "FLOP/s"));
  benchmark::AddCustomContext("exp_float", giga(bench::exp_rate<float>(), "/s"));
  benchmark::AddCustomContext("exp_double", giga(bench::exp_rate<double>(), "/s"));
  benchmark::AddCustomContext("simd", Eigen::SimdInstructionSetsInUse());
}

void add_suite() {
  for (const bool causal : {false, true}) {
    const Shape base{.causal = causal};
    for (const Index n : {64, 256, 1024, 4096, 8192}) {
      Shape shape = base;
      shape.n = n;
      add_beside_plain<float>(shape);
      add_attention<float>("favor_antithetic", favor<float>(shape, true), shape);
    }
    // One factor at a time, around n = 4096.
    Shape shape = base;
    shape.n = 4096;
    for (const Index m : {64, 250, 1024}) {
      Shape other = shape;
      other.m = m;
      add_attention<float>("favor", favor<float>(other, false), other);
    }
    for (const Index d : {16, 32, 72, 128}) {
      Shape other = shape;
      other.d = d;
      add_attention<float>("favor", favor<float>(other, false), other);
      add_attention<float>("softmax", pa::ExponentialKernel<float>(), other);
    }
    for (const Index dv : {16, 128}) {
      Shape other = shape;
      other.dv = dv;
      add_attention<float>("favor", favor<float>(other, false), other);
    }
    add_rest(shape);
    add_attention<double>("favor", favor<double>(shape, false), shape);
    add_attention<double>("softmax", pa::ExponentialKernel<double>(), shape);
  }
  add_decode<float>({});
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  bench::keep_pages();
  describe_machine();
  add_suite();
  benchmark::RunSpecifiedBenchmarks();
}
