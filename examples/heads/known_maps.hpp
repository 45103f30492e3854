// The maps that compare knows: a new one is a new line. Next: report.hpp.
#pragma once

#include <phiattn/phiattn.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "known_memories.hpp"

namespace examples {

/// A similarity that compare runs.
struct Map {
  std::string name;   // in --maps and in JSON
  std::string title;  // in the table; * is calibrated on the head's own q and k
  bool by_default;    // without --maps
  bool random;        // takes --features
  std::function<Operator(const Trial&, Index features)> make;

  Result run(const Trial& trial, Index features, pa::Matrix<float>& out) const {
    Result result = trial.run([&] { return make(trial, features); }, out);
    result.map = name;
    result.title = title;
    return result;
  }
};

/// The baseline's name.
inline const std::string kUniform = "uniform";

inline constexpr bool kByDefault = true;
inline constexpr bool kWhenNamed = false;
inline constexpr bool kRandom = true;

/// `make(trial, m)` returns the similarity, with m features if they are for the user to choose.
template <class Make>
Map map(std::string name, std::string title, bool by_default, Make make, bool random = false) {
  return {std::move(name), std::move(title), by_default, random,
          [make](const Trial& trial, Index m) { return operator_of(make(trial, m)); }};
}

/// Positive random features over the projection that `sample(trial, m)` returns.
template <class Sample>
Map positive(std::string name, std::string title, bool by_default, Sample sample) {
  return map(
      std::move(name), std::move(title), by_default,
      [=](const Trial& t, Index m) { return pa::PositiveRandomFeatures<float>(sample(t, m)); }, kRandom);
}

/// The sigma with which exp(-|q - k|^2 / (2 sigma^2)) has the factor exp(q.k / sqrt(d)).
inline double width(const Trial& trial) { return std::pow(static_cast<double>(trial.dimension()), 0.25); }

/// `map` of keys less their mean: to exp(q.k) it is all the same, to a polynomial it is not.
template <class F>
auto centred(F map, const Trial& trial) {
  return pa::Reparametrised(std::move(map), pa::key_centring(trial.k()));
}

/// m of the head's own tokens, half of them queries and half keys, not of the same positions.
inline pa::Matrix<double> landmarks(const Trial& trial, Index m, std::uint64_t seed) {
  const Index of_q = std::min(m / 2, trial.q().rows());
  const Index of_k = std::min(m - m / 2, trial.k().rows());
  pa::Matrix<double> rows(of_q + of_k, trial.dimension());
  if (of_q > 0) rows.topRows(of_q) = pa::sampled_rows(trial.q(), of_q, 2 * seed);
  rows.bottomRows(of_k) = pa::sampled_rows(trial.k(), of_k, 2 * seed + 1);
  return rows;
}

/// phi(q).phi(k) ~ exp(q.k) by random features.
inline std::vector<Map> random_maps(std::uint64_t seed) {
  using T = const Trial&;
  const auto sampled = [seed](pa::ProjectionOptions options) {
    options.seed = seed;
    return [options](T t, Index m) { return pa::sample_projection<float>(m, t.dimension(), options); };
  };
  const auto plain = sampled({});
  // For maps of cosines: m/2 frequencies without their negatives.
  const auto half = [seed](T t, Index m) {
    return pa::sample_projection<float>((m + 1) / 2, t.dimension(), {.antithetic = false, .seed = seed});
  };
  constexpr auto kTaylor = pa::TensorPower::taylor;
  return {
      positive("performer", "Performer", kByDefault, plain),
      positive("performer-iid", "Performer, iid", kWhenNamed,
               sampled({.directions = pa::Directions::iid, .antithetic = false})),
      positive("performer-quantile", "Performer, quantile", kWhenNamed,
               sampled({.radii = pa::Radii::quantile})),
      positive("performer-simplex", "Performer, simplex", kWhenNamed,
               sampled({.directions = pa::Directions::simplex, .antithetic = false})),
      positive("performer-hadamard", "Performer, Hadamard", kWhenNamed,
               sampled({.directions = pa::Directions::hadamard})),
      positive("favor++", "FAVOR++ *", kWhenNamed,
               [plain](T t, Index m) {
                 return pa::favor_plusplus(plain(t, m), pa::favor_plusplus_parameter(t.q(), t.k()));
               }),
      positive("importance", "importance-sampled *", kWhenNamed,
               [seed](T t, Index m) {
                 return pa::sample_importance_projection<float>(m, t.q(), t.k(), {.seed = seed});
               }),
      map(
          "performer-centred", "Performer, centred *", kWhenNamed,
          [plain](T t, Index m) {
            return pa::Reparametrised(pa::PositiveRandomFeatures<float>(plain(t, m)),
                                      pa::centring(t.q(), t.k()));
          },
          kRandom),
      map(
          "trigonometric", "trigonometric", kWhenNamed,
          [half](T t, Index m) { return pa::TrigonometricFeatures<float>(half(t, m)); }, kRandom),
      map(
          "fourier-pairs", "Fourier pairs", kWhenNamed,
          [seed](T t, Index m) {
            return pa::ExponentialPairFeatures<float>((m + 1) / 2, t.dimension(), 0.75, seed);
          },
          kRandom),
      map(
          "random-fourier", "random Fourier", kWhenNamed,
          [seed](T t, Index m) {
            return pa::RandomFourierFeatures<float>(
                pa::sample_gaussian_spectrum<float>((m + 1) / 2, t.dimension(), width(t), {.seed = seed}));
          },
          kRandom),
      map(
          "tensor-sketch", "TensorSketch, n=2 *", kWhenNamed,
          [seed](T t, Index m) {
            const Index d = t.dimension();
            return centred(pa::TensorSketchFeatures<float>(kTaylor, d, 2, std::max(m, d + 2), seed), t);
          },
          kRandom),
      map(
          "maclaurin", "Maclaurin, n=2 *", kWhenNamed,
          [seed](T t, Index m) {
            const Index d = t.dimension();
            return centred(pa::RandomMaclaurinFeatures<float>(kTaylor, d, 2, std::max(m, d + 2), seed), t);
          },
          kRandom),
      map(
          "nystrom", "Nystrom *", kWhenNamed,
          [seed](T t, Index m) {
            return pa::NystromFeatures(pa::ExponentialKernel<float>(), landmarks(t, m, seed));
          },
          kRandom),
      map(
          "dijiang", "DiJiang", kWhenNamed,
          [seed](T t, Index m) {
            return pa::DiJiangFeatures<float>(pa::sample_dijiang_projection<float>(m, t.dimension(), seed));
          },
          kRandom),
  };
}

/// Kernels, polynomials, and similarities of their own.
inline std::vector<Map> other_maps() {
  using T = const Trial&;
  const auto power = [](pa::TensorPower family, Index n) {
    return [=](T t, Index) { return pa::TensorPowerFeatures<float>(family, t.dimension(), n); };
  };
  constexpr auto kTaylor = pa::TensorPower::taylor;
  constexpr auto kLimit = pa::TensorPower::exponential_limit;
  return {
      map("gaussian", "Gaussian kernel", kWhenNamed,
          [](T t, Index) { return pa::GaussianKernel<float>(width(t)); }),
      map("cosine", "cosine kernel, 10", kWhenNamed, [](T, Index) { return pa::CosineKernel<float>(10); }),
      map("taylor", "Taylor, degree 2", kByDefault, power(kTaylor, 2)),
      map("taylor3", "Taylor, degree 3", kWhenNamed, power(kTaylor, 3)),
      map("limit", "(1 + q.k/2)^2", kByDefault, power(kLimit, 2)),
      map("limit3", "(1 + q.k/3)^3", kWhenNamed, power(kLimit, 3)),
      map("limit4", "(1 + q.k/4)^4", kWhenNamed, power(kLimit, 4)),
      map("elu", "elu + 1", kByDefault, [](T t, Index) { return pa::EluFeatures<float>(t.dimension()); }),
      map("relu", "relu", kWhenNamed, [](T t, Index) { return pa::relu_features<float>(t.dimension()); }),
      map("squared-relu", "relu^2", kWhenNamed,
          [](T t, Index) { return pa::squared_relu_features<float>(t.dimension()); }),
      map("softplus", "softplus", kWhenNamed,
          [](T t, Index) { return pa::softplus_features<float>(t.dimension()); }),
      map("sigmoid", "sigmoid", kWhenNamed,
          [](T t, Index) { return pa::sigmoid_features<float>(t.dimension()); }),
      map("dpfp", "DPFP-3", kWhenNamed, [](T t, Index) { return pa::DpfpFeatures<float>(t.dimension(), 3); }),
      map("hedgehog", "Hedgehog, W = I", kWhenNamed,
          [](T t, Index) { return pa::HedgehogFeatures<float>(t.dimension()); }),
      map("cosformer", "cosFormer", kWhenNamed,
          [](T t, Index) { return pa::CosformerFeatures<float>(t.dimension(), t.k().rows()); }),
      map(kUniform, "uniform attention", kByDefault, power(kTaylor, 0)),
  };
}

/// Exact attention to the 64 nearest tokens, memories of the others.
inline std::vector<Map> memories() {
  using T = const Trial&;
  return {
      map("window", "window alone", kWhenNamed, [](T, Index) { return window_alone(); }),
      map("closure", "closure", kByDefault,
          [](T t, Index) { return closure_memory(pa::key_centring(t.k())); }),
      map("closure-centred", "closure, centred *", kWhenNamed,
          [](T t, Index) { return closure_memory(pa::centring(t.q(), t.k())); }),
      map("mixture", "4 closures *", kWhenNamed, [](T t, Index) { return mixture_memory(t, 4); }),
      map("mixture16", "16 closures *", kWhenNamed, [](T t, Index) { return mixture_memory(t, 16); }),
      map("clusters", "8 of 64 clusters *", kByDefault, [](T t, Index) { return cluster_memory(t, 8, 64); }),
      map("clusters128", "16 of 128 clust. *", kWhenNamed,
          [](T t, Index) { return cluster_memory(t, 16, 128); }),
  };
}

/// All of them, exact softmax first and the baseline last.
inline std::vector<Map> known_maps(std::uint64_t seed) {
  std::vector<Map> maps{map("softmax", "exact softmax", kByDefault,
                            [](const Trial&, Index) { return pa::ExponentialKernel<float>(); })};
  for (const auto& group : {memories(), random_maps(seed), other_maps()})
    maps.insert(maps.end(), group.begin(), group.end());
  return maps;
}

}  // namespace examples
