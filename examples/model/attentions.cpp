#include "attentions.hpp"

#include <phiattn/phiattn.hpp>

#include <utility>

namespace examples {
namespace {

/// Tokens that are near.
constexpr Index kNear = 64;

/// Tokens of a calibration window.
constexpr Index kContext = 1024;

constexpr pa::KMeansOptions kCentres{.restarts = 1, .seed = kSeed};

/// Behind an exact window.
template <class Far>
HeadMemory behind_window(Far far) {
  return HeadMemory(pa::Windowed(kNear, std::move(far)));
}

/// The diagonal takes half of what the full covariance does. On the calibration text one closure loses less with it,
/// and several as much.
constexpr pa::ClosureOptions kDiagonal{.covariance = pa::Covariance::diagonal};

auto closure(const HeadSample& s, const pa::ClosureOptions& options = kDiagonal) {
  return pa::GaussianClosure<float>(s.k.cols(), s.v.cols(), options);
}

/// Centred keys, then both sides of one size in each coordinate.
pa::Reparametrisation balanced(const HeadSample& s) {
  const auto centred = pa::key_centring(s.k);
  return centred.then(pa::diagonal_balance(centred.queries(s.q), centred.keys(s.k)));
}

auto mixture(const HeadSample& s, Index count) {
  const auto r = balanced(s);
  return pa::ClosureMixture<float>(pa::k_means(r.keys(s.k), count, kCentres), r, s.v.cols(), kDiagonal);
}

auto clusters(const HeadSample& s, Index top, Index count) {
  const auto r = balanced(s);
  return pa::ClusterMemory<float>(pa::k_means(r.keys(s.k), count, kCentres), r, s.v.cols(), {.top = top});
}

/// The cheapest memory that is within 5 % of exact attention to the last of the calibration windows. The constants are
/// those of the windows before.
HeadMemory adaptive(const HeadSample& s) {
  constexpr double kTolerance = 0.05;
  const HeadSample before = s.rows(0, s.q.rows() - kContext);
  const HeadSample last = s.rows(before.q.rows(), kContext);
  const auto small = pa::Windowed(kNear, closure(before));
  const auto middle = pa::Windowed(kNear, mixture(before, 16));
  const auto large = pa::Windowed(kNear, clusters(before, 8, 64));
  const pa::AttentionOptions causal{.causality = pa::Causality::causal};
  const auto choice =
      pa::cheapest_memory<float>(kTolerance, last.q, last.k, last.v, causal, small, middle, large);
  return choice.memory == 0 ? HeadMemory(small) : choice.memory == 1 ? HeadMemory(middle) : HeadMemory(large);
}

/// Memories of their own.
std::vector<Attention> far_memories() {
  using Sample = const HeadSample&;
  return {
      {"window", "window alone", "exact to the last 64 tokens, nothing beyond", true,
       [](Sample s) { return behind_window(pa::ForgetfulMemory<float>(s.v.cols())); }},
      {"closure", "closure", "the window, and one Gaussian of what is older (variances)", true,
       [](Sample s) { return behind_window(closure(s)); }},
      {"closure-full", "closure, full S", "the same, with its full covariance", false,
       [](Sample s) { return behind_window(closure(s, {})); }},
      {"closure-centred", "closure, centred *", "closure, about the mean query", false,
       [](Sample s) {
         return behind_window(pa::GaussianClosure<float>(pa::centring(s.q, s.k), s.v.cols(), kDiagonal));
       },
       kNear},
      {"mixture", "4 closures *", "the window, and 4 Gaussians of what is older", false,
       [](Sample s) { return behind_window(mixture(s, 4)); }, kNear},
      {"mixture16", "16 closures *", "the same, 16 Gaussians", true,
       [](Sample s) { return behind_window(mixture(s, 16)); }, kNear},
      {"clusters4", "4 of 64 clusters *", "the window, and of 64 clusters the 4 that matter", false,
       [](Sample s) { return behind_window(clusters(s, 4, 64)); }, 64},
      {"clusters", "8 of 64 clusters *", "the same, 8 of 64", true,
       [](Sample s) { return behind_window(clusters(s, 8, 64)); }, 64},
      {"clusters128", "16 of 128 clusters *", "the same, 16 of 128", false,
       [](Sample s) { return behind_window(clusters(s, 16, 128)); }, 128},
      {"adaptive", "cheapest within 5 % *", "the cheapest within 5 % of closure, mixture16, clusters", true,
       adaptive, kContext + 64},
      {"closure-alone", "closure, no window", "one Gaussian of all tokens, without a window", false,
       [](Sample s) { return HeadMemory(closure(s)); }},
  };
}

/// Feature maps in a linear state.
std::vector<Attention> linear_states() {
  using Sample = const HeadSample&;
  constexpr Index kFeatures = 256;
  const auto omega = [](Sample s) {
    return pa::sample_projection<float>(kFeatures, s.k.cols(), {.seed = kSeed});
  };
  // One state for all maps of a kind: it is compiled once.
  const auto state = [](auto map, Sample s) {
    return pa::LinearState(pa::any_feature_map(std::move(map)), s.v.cols());
  };
  const auto linear = [=](auto make_map) {
    return [=](Sample s) { return HeadMemory(state(make_map(s), s)); };
  };
  const auto performer = [=](Sample s) { return pa::PositiveRandomFeatures<float>(omega(s)); };
  const auto centred = [=](Sample s) { return pa::Reparametrised(performer(s), pa::centring(s.q, s.k)); };
  return {
      {"window-performer", "window + Performer *", "the window, and random features of what is older", true,
       [=](Sample s) { return behind_window(state(centred(s), s)); }, kNear},
      {"performer", "Performer", "256 positive random features, no window from here on", true,
       linear(performer)},
      {"performer-centred", "Performer, centred *", "the same, of centred q and k", false, linear(centred),
       kNear},
      {"favor++", "FAVOR++ *", "the same, variance tuned on q and k", true, linear([=](Sample s) {
         return pa::PositiveRandomFeatures<float>(
             pa::favor_plusplus(omega(s), pa::favor_plusplus_parameter(s.q, s.k)));
       }),
       kNear},
      {"importance", "importance-sampled *", "the same, frequencies drawn where q and k are", false,
       linear([](Sample s) {
         return pa::PositiveRandomFeatures<float>(
             pa::sample_importance_projection<float>(kFeatures, s.q, s.k, {.seed = kSeed}));
       }),
       kNear},
      {"trigonometric", "trigonometric", "128 cosines and as many sines", false, linear([](Sample s) {
         // Cosines are even: frequencies without their negatives.
         return pa::TrigonometricFeatures<float>(
             pa::sample_projection<float>(kFeatures / 2, s.k.cols(), {.antithetic = false, .seed = kSeed}));
       })},
      {"taylor", "Taylor, degree 2", "1 + q.k + (q.k)^2/2", false, linear([](Sample s) {
         return pa::TensorPowerFeatures<float>(pa::TensorPower::taylor, s.k.cols(), 2);
       })},
      {"elu", "elu + 1", "phi(x) = elu(x) + 1", true,
       linear([](Sample s) { return pa::EluFeatures<float>(s.k.cols()); })},
      {"squared-relu", "relu^2", "phi(x) = relu(x)^2", false,
       linear([](Sample s) { return pa::squared_relu_features<float>(s.k.cols()); })},
      {"dpfp", "DPFP-3", "products of positive parts, nu = 3", false,
       linear([](Sample s) { return pa::DpfpFeatures<float>(s.k.cols(), 3); })},
      {"hedgehog", "Hedgehog, W = I", "phi(x) = exp(x) and exp(-x), untrained", false,
       linear([](Sample s) { return pa::HedgehogFeatures<float>(s.k.cols()); })},
      {"cosformer", "cosFormer", "phi(x) = relu(x), and a cosine of the distance", false,
       linear([](Sample s) { return pa::CosformerFeatures<float>(s.k.cols(), kContext); })},
      {"uniform", "uniform attention", "every token weighs the same: what an attention must beat", true,
       linear(
           [](Sample s) { return pa::TensorPowerFeatures<float>(pa::TensorPower::taylor, s.k.cols(), 0); })},
  };
}

}  // namespace

std::vector<Attention> known_attentions() {
  std::vector<Attention> all{{kExact, "exact softmax", "exact: a cache of all keys and values", true,
                              [](const HeadSample& s) { return HeadMemory(exact_memory(s.v.cols())); }}};
  for (const auto& group : {far_memories(), linear_states()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace examples
