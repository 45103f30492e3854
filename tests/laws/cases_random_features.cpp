#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/projection/projection.hpp>

#include "support/case_of.hpp"
#include "support/problem.hpp"

namespace laws {

/// 32 frequencies: independent ones, and antithetic orthogonal ones as the library samples them.
template <class S>
std::vector<Case<S>> random_features() {
  constexpr Index kFeatures = 32;
  const auto independent = [](Index d) { return gaussian<S>(kFeatures, d, kSeed); };
  const auto sampled = [](Index d) { return phiattn::sample_projection<S>(kFeatures, d, {.seed = kSeed}); };
  return {case_of(
              "independent random features", true,
              [=](Index d) { return phiattn::PositiveRandomFeatures<S>(independent(d)); },
              [=](Index d) { return oracle::random_features(independent(d).template cast<Real>()); }),
          case_of(
              "antithetic random features", true,
              [=](Index d) { return phiattn::PositiveRandomFeatures<S>(sampled(d)); },
              [=](Index d) { return oracle::random_features(sampled(d).matrix().template cast<Real>()); })};
}

template std::vector<Case<float>> random_features();
template std::vector<Case<double>> random_features();

}  // namespace laws
