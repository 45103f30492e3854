#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/fitting/importance.hpp>
#include <phiattn/projection/favor_plusplus.hpp>
#include <phiattn/projection/projection.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

namespace {

using phiattn::Directions;

constexpr Index kFeatures = 32;

template <class S>
using Sample = std::function<phiattn::Projection<S>(Index d)>;

/// Features over whatever projection: one type for all, so that they are compiled once.
template <class S>
Case<S> features_over(const std::string& name, const Sample<S>& sample) {
  return case_of(
      name + " random features", true, [=](Index d) { return phiattn::PositiveRandomFeatures<S>(sample(d)); },
      [=](Index d) {
        const auto omega = sample(d);
        return oracle::random_features(omega.matrix().template cast<Real>(),
                                       omega.log_weights().template cast<Real>());
      });
}

}  // namespace

/// Frequencies of every direction and with weights.
template <class S>
std::vector<Case<S>> random_features() {
  const auto sampled = [](Directions directions, bool antithetic) -> Sample<S> {
    return [=](Index d) {
      return phiattn::sample_projection<S>(
          kFeatures, d, {.directions = directions, .antithetic = antithetic, .seed = kSeed});
    };
  };
  const auto antithetic = sampled(Directions::orthogonal, true);
  return {features_over<S>("independent",
                           [](Index d) { return phiattn::Projection<S>(gaussian<S>(kFeatures, d, kSeed)); }),
          features_over<S>("antithetic", antithetic),
          features_over<S>("simplex", sampled(Directions::simplex, false)),
          features_over<S>("Hadamard", sampled(Directions::hadamard, false)),
          features_over<S>("antithetic Hadamard", sampled(Directions::hadamard, true)),
          features_over<S>("FAVOR++", [=](Index d) { return phiattn::favor_plusplus(antithetic(d), -0.1); }),
          features_over<S>("importance-sampled", [](Index d) {
            return phiattn::sample_importance_projection<S>(kFeatures, gaussian<double>(16, d, kSeed),
                                                            gaussian<double>(20, d, kSeed + 1),
                                                            {.seed = kSeed});
          })};
}

template std::vector<Case<float>> random_features();
template std::vector<Case<double>> random_features();

}  // namespace laws
