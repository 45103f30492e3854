// The maps that compare knows: a new one is a new line.
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

/// Positive random features over the projection that `sample(trial, m)` returns.
template <class Sample>
Map positive(std::string name, std::string title, std::string about, bool by_default, Sample sample) {
  return map(
      std::move(name), std::move(title), std::move(about), by_default,
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
      positive("performer", "Performer", "positive random features of exp(q.k)", kByDefault, plain),
      positive("performer-iid", "Performer, iid", "the same, of independent frequencies", kWhenNamed,
               sampled({.directions = pa::Directions::iid, .antithetic = false})),
      positive("performer-quantile", "Performer, quantile", "the same, radii by quantiles", kWhenNamed,
               sampled({.radii = pa::Radii::quantile})),
      positive("performer-simplex", "Performer, simplex", "the same, directions of a simplex", kWhenNamed,
               sampled({.directions = pa::Directions::simplex, .antithetic = false})),
      positive("performer-hadamard", "Performer, Hadamard", "the same, by Hadamard transforms", kWhenNamed,
               sampled({.directions = pa::Directions::hadamard})),
      positive("favor++", "FAVOR++ *", "the same, variance tuned on the head's q and k", kWhenNamed,
               [plain](T t, Index m) {
                 return pa::favor_plusplus(plain(t, m), pa::favor_plusplus_parameter(t.q(), t.k()));
               }),
      positive("importance", "importance-sampled *",
               "the same, frequencies drawn where the head's q and k are", kWhenNamed,
               [seed](T t, Index m) {
                 return pa::sample_importance_projection<float>(m, t.q(), t.k(), {.seed = seed});
               }),
      map(
          "performer-centred", "Performer, centred *", "the same, of centred q and k", kWhenNamed,
          [plain](T t, Index m) {
            return pa::Reparametrised(pa::PositiveRandomFeatures<float>(plain(t, m)),
                                      pa::centring(t.q(), t.k()));
          },
          kRandom),
      map(
          "trigonometric", "trigonometric", "cosines and sines for exp(q.k); signed", kWhenNamed,
          [half](T t, Index m) { return pa::TrigonometricFeatures<float>(half(t, m)); }, kRandom),
      map(
          "fourier-pairs", "Fourier pairs", "by pairs of frequencies, for any similarity; signed", kWhenNamed,
          [seed](T t, Index m) {
            return pa::ExponentialPairFeatures<float>((m + 1) / 2, t.dimension(), 0.75, seed);
          },
          kRandom),
      map(
          "random-fourier", "random Fourier", "cosines and sines for the Gaussian kernel; signed", kWhenNamed,
          [seed](T t, Index m) {
            return pa::RandomFourierFeatures<float>(
                pa::sample_gaussian_spectrum<float>((m + 1) / 2, t.dimension(), width(t), {.seed = seed}));
          },
          kRandom),
      map(
          "tensor-sketch", "TensorSketch, n=2 *", "sketch of 1 + q.k + (q.k)^2/2, keys less their mean",
          kWhenNamed,
          [seed](T t, Index m) {
            const Index d = t.dimension();
            return centred(pa::TensorSketchFeatures<float>(kTaylor, d, 2, std::max(m, d + 2), seed), t);
          },
          kRandom),
      map(
          "maclaurin", "Maclaurin, n=2 *", "the same, by products of random signs", kWhenNamed,
          [seed](T t, Index m) {
            const Index d = t.dimension();
            return centred(pa::RandomMaclaurinFeatures<float>(kTaylor, d, 2, std::max(m, d + 2), seed), t);
          },
          kRandom),
      map(
          "nystrom", "Nystrom *", "landmarks among the head's own q and k", kWhenNamed,
          [seed](T t, Index m) {
            return pa::NystromFeatures(pa::ExponentialKernel<float>(), landmarks(t, m, seed));
          },
          kRandom),
      map(
          "dijiang", "DiJiang", "exp of a weighted cosine transform", kWhenNamed,
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
      map("gaussian", "Gaussian kernel", "exp(-|q - k|^2 / 2 sigma^2), exact, in O(n^2)", kWhenNamed,
          [](T t, Index) { return pa::GaussianKernel<float>(width(t)); }),
      map("cosine", "cosine kernel, 10", "exp(10 cos(q, k)), exact, in O(n^2)", kWhenNamed,
          [](T, Index) { return pa::CosineKernel<float>(10); }),
      map("taylor", "Taylor, degree 2", "1 + q.k + (q.k)^2/2", kByDefault, power(kTaylor, 2)),
      map("taylor3", "Taylor, degree 3", "the same and (q.k)^3/6; slow, 47905 features for d = 64",
          kWhenNamed, power(kTaylor, 3)),
      map("limit", "(1 + q.k/2)^2", "(1 + q.k/2)^2", kByDefault, power(kLimit, 2)),
      map("limit3", "(1 + q.k/3)^3", "(1 + q.k/3)^3; slow", kWhenNamed, power(kLimit, 3)),
      map("limit4", "(1 + q.k/4)^4", "(1 + q.k/4)^4; very slow", kWhenNamed, power(kLimit, 4)),
      map("elu", "elu + 1", "phi(x) = elu(x) + 1", kByDefault,
          [](T t, Index) { return pa::EluFeatures<float>(t.dimension()); }),
      map("relu", "relu", "phi(x) = relu(x)", kWhenNamed,
          [](T t, Index) { return pa::relu_features<float>(t.dimension()); }),
      map("squared-relu", "relu^2", "phi(x) = relu(x)^2", kWhenNamed,
          [](T t, Index) { return pa::squared_relu_features<float>(t.dimension()); }),
      map("softplus", "softplus", "phi(x) = ln(1 + e^x)", kWhenNamed,
          [](T t, Index) { return pa::softplus_features<float>(t.dimension()); }),
      map("sigmoid", "sigmoid", "phi(x) = 1 / (1 + e^-x)", kWhenNamed,
          [](T t, Index) { return pa::sigmoid_features<float>(t.dimension()); }),
      map("dpfp", "DPFP-3", "products of positive parts, nu = 3", kWhenNamed,
          [](T t, Index) { return pa::DpfpFeatures<float>(t.dimension(), 3); }),
      map("hedgehog", "Hedgehog, W = I", "phi(x) = exp(x) and exp(-x), untrained", kWhenNamed,
          [](T t, Index) { return pa::HedgehogFeatures<float>(t.dimension()); }),
      map("cosformer", "cosFormer", "phi(x) = relu(x), and a cosine of the distance", kWhenNamed,
          [](T t, Index) { return pa::CosformerFeatures<float>(t.dimension(), t.k().rows()); }),
      map(kUniform, "uniform attention", "every key weighs the same: what a map must beat", kByDefault,
          power(kTaylor, 0)),
  };
}

/// All of them, exact softmax first and the baseline last.
inline std::vector<Map> known_maps(std::uint64_t seed) {
  std::vector<Map> maps{map("softmax", "exact softmax", "exp(q.k), exact, in O(n^2)", kByDefault,
                            [](const Trial&, Index) { return pa::ExponentialKernel<float>(); })};
  for (const auto& group : {memories(), random_maps(seed), other_maps()})
    maps.insert(maps.end(), group.begin(), group.end());
  return maps;
}

}  // namespace examples
