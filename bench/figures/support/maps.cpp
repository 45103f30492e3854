// The random maps of the figures, compiled once.
#include "maps.hpp"

#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/fourier_pairs.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>
#include <phiattn/fitting/favor_plusplus.hpp>
#include <phiattn/projection/favor_plusplus.hpp>

namespace figures {

namespace {

namespace pa = phiattn;

RandomMap positive(std::string name, pa::ProjectionOptions options) {
  return {std::move(name),
          [options](const pa::Regime& regime, const auto& q, const auto&, Index m, std::uint64_t seed) {
            pa::ProjectionOptions seeded = options;
            seeded.seed = seed;
            return regime.expect(
                pa::PositiveRandomFeatures<double>(pa::sample_projection<double>(m, q.cols(), seeded)));
          }};
}

}  // namespace

const std::vector<RandomMap>& random_maps() {
  using enum pa::Directions;
  using pa::Radii;
  static const std::vector<RandomMap> maps{
      positive("iid", {iid, Radii::chi, false}),
      positive("orthogonal", {orthogonal, Radii::chi, false}),
      positive("quantile radii", {orthogonal, Radii::quantile, false}),
      positive("fixed radii", {orthogonal, Radii::fixed, false}),
      positive("simplex", {simplex, Radii::chi, false}),
      positive("Hadamard", {hadamard, Radii::chi, false}),
      positive("antithetic", {orthogonal, Radii::chi, true}),
      positive("antithetic fixed", {orthogonal, Radii::fixed, true}),
      {"FAVOR++ antithetic",
       [](const pa::Regime& regime, const auto& q, const auto& k, Index m, std::uint64_t seed) {
         const auto omega = pa::sample_projection<double>(m, q.cols(), {.seed = seed});
         return regime.expect(pa::PositiveRandomFeatures<double>(
             pa::favor_plusplus(omega, pa::favor_plusplus_parameter(q, k))));
       }},
      {"trigonometric",
       [](const pa::Regime& regime, const auto& q, const auto&, Index m, std::uint64_t seed) {
         return regime.expect(pa::TrigonometricFeatures<double>(
             pa::sample_projection<double>(m / 2, q.cols(), {.antithetic = false, .seed = seed})));
       }}};
  return maps;
}

const RandomMap& fourier_pairs() {
  static const RandomMap map{
      "Fourier pairs", [](const pa::Regime& regime, const auto& q, const auto&, Index m, std::uint64_t seed) {
        return regime.expect(pa::ExponentialPairFeatures<double>(m / 2, q.cols(), 0.75, seed));
      }};
  return map;
}

}  // namespace figures
