#include "subjects.hpp"

#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include <algorithm>
#include <numbers>

#include "support/far_case_of.hpp"

namespace fuzz {

namespace {

using namespace phiattn;
using oracle::FarKeys;
using oracle::FarModel;
using oracle::FarResult;
using oracle::Frame;
using oracle::Real;
using oracle::RealRow;

constexpr Index kHorizon = 1000;  // beyond all positions

/// A map that throws when it is told to.
template <class Map>
class InterruptedMap : public Map {
 public:
  using Map::Map;
  void features(Side side, const ConstMatrixRef<float>& x, Index first, FeatureBlock<float> block) const {
    if (calls_left() > 0 && --calls_left() == 0) throw Interrupted();
    Map::features(side, x, first, block);
  }
};

/// A similarity without negative weights as what it makes of all keys.
FarModel all_of(const oracle::Similarity& similarity) {
  return [similarity](const RealRow& x, const FarKeys& keys, Real) -> FarResult {
    const auto due = oracle::attend(similarity, x, keys.y, keys.v, {.scale = 1}, keys.log_weights);
    return {due.log_normaliser(0), due.out.row(0), due.condition(0)};
  };
}

FarModel nothing() {
  return [](const RealRow&, const FarKeys& keys, Real) -> FarResult {
    return {-oracle::kInfinity, RealRow::Zero(keys.v.cols()), 1};
  };
}

/// relu(q) . relu(k) cos(pi (i - j) / (2M)) of tokens whose last coordinate is their position.
oracle::Similarity cosformer() {
  return {[](const oracle::Token& q, const oracle::Token& k) -> oracle::Term {
            const auto relu = [](const auto& x) { return x.head(kD).cwiseMax(Real(0)).eval(); };
            const Real product = relu(q).dot(relu(k));
            const Real angle = std::numbers::pi_v<Real> * (q(kD) - k(kD)) / (2 * kHorizon);
            const Real log = std::log(product * std::cos(angle));
            return {log, 1, std::log(product), 0};
          },
          false};
}

Matrix<double> centres() { return 3 * Matrix<double>::Identity(3, kD); }

/// Where two clusters are as good as each other, either may be read.
FarModel decided(const FarModel& clusters, Index top) {
  return [=](const RealRow& x, const FarKeys& keys, Real root_scale) {
    std::vector<Real> estimates;
    for (const FarKeys& group : oracle::grouped(keys, root_scale * centres().cast<Real>())) {
      estimates.push_back(oracle::closure(0.35L, true)(x, group, root_scale).log_normaliser);
    }
    std::sort(estimates.rbegin(), estimates.rend());
    FarResult result = clusters(x, keys, root_scale);
    const auto last = static_cast<std::size_t>(top);
    if (estimates[last - 1] - estimates[last] < 1e-3L) result.condition = oracle::kInfinity;
    return result;
  };
}

template <class Make>
void add(std::vector<Subject>& all, const std::string& name, const Frame& frame, const FarModel& model,
         double scale, const Make& make, const Traits& traits = {}) {
  const laws::FarCase<float> far{name, frame, model, {}, {}, {}};
  all.push_back({far, 0, scale, traits, [make](Index dv, Index chunk) -> AnyMemory<float> {
                   return make(dv, AttentionOptions{.chunk = chunk});
                 }});
  if (traits.by_position) return;  // the window's own oracle knows no positions
  for (const Index window : {1, 5}) {
    auto windowed = far;
    windowed.name = "window before " + name;
    const Traits behind_window{.throws = traits.throws};
    all.push_back({windowed, window, scale, behind_window, [=](Index dv, Index chunk) -> AnyMemory<float> {
                     const AttentionOptions options{.scale = scale, .chunk = chunk};
                     return Windowed(window, make(dv, options), options);
                   }});
  }
}

std::vector<Subject> make_subjects() {
  const double root = 1 / std::sqrt(static_cast<double>(kD));
  const Frame plain = Frame::identity(kD);
  const Frame balanced = laws::balanced_frame();
  const Reparametrisation identity = laws::reparametrisation(plain);
  const oracle::Matrix exact_centres = centres().cast<Real>();
  std::vector<Subject> all;
  add(all, "elu state", plain, all_of(oracle::elu()), 1,
      [](Index dv, const AttentionOptions& options) {
        return LinearState(InterruptedMap<EluFeatures<float>>(kD), dv, options);
      },
      {.throws = true});
  add(all, "Taylor state", plain, all_of(oracle::taylor(2)), root,
      [](Index dv, const AttentionOptions& options) {
        return LinearState(TaylorFeatures<float>(kD, 2), dv, options);
      });
  add(all, "cosFormer state", Frame::identity(kD + 1), all_of(cosformer()), 1,
      [](Index dv, const AttentionOptions& options) {
        return LinearState(InterruptedMap<CosformerFeatures<float>>(kD, kHorizon), dv, options);
      },
      {.by_position = true, .throws = true});
  add(all, "cache", plain, all_of(oracle::exponential()), root,
      [](Index dv, const AttentionOptions& options) {
        return KeyValueCache(ExponentialKernel<float>(), dv, options);
      },
      {.keeps = true});
  add(all, "nothing", plain, nothing(), root,
      [](Index dv, const AttentionOptions&) { return ForgetfulMemory<float>(dv); });
  add(all, "closure", balanced, oracle::closure(0.35L), root, [=](Index dv, const AttentionOptions& options) {
    return GaussianClosure<float>(laws::reparametrisation(balanced), dv, {}, options);
  });
  add(all, "diagonal closure", plain, oracle::closure(0.2L, true), root,
      [=](Index dv, const AttentionOptions& options) {
        return GaussianClosure<float>(identity, dv, {.covariance = Covariance::diagonal, .freezing = 0.2},
                                      options);
      });
  add(all, "mixture", plain, oracle::mixture(exact_centres, 0.35L), root,
      [=](Index dv, const AttentionOptions& options) {
        return ClosureMixture<float>(centres(), identity, dv, {}, options);
      });
  add(all, "clusters", plain, decided(oracle::clusters(exact_centres, 1, 0.35L), 1), root,
      [=](Index dv, const AttentionOptions& options) {
        return ClusterMemory<float>(centres(), identity, dv, {.top = 1}, options);
      });
  return all;
}

}  // namespace

Matrix<float> Subject::queries(Bytes& bytes, Index n) const {
  const Matrix<float> queries = bytes.gaussian<float>(n, kD, 0.7);
  return traits.by_position ? queries.cwiseAbs().eval() : queries;
}

Matrix<float> Subject::keys(Bytes& bytes, Index n) const {
  Matrix<float> keys = bytes.gaussian<float>(n, kD, 0.4).cwiseMax(-0.9F).cwiseMin(0.9F);
  const Index nearest = bytes.between(0, 80);
  for (Index j = 0, c = nearest; j < n; ++j, c = c / 3 + j) keys(j, c % 3) += 3;
  return keys;
}

const Subject& draw_subject(Bytes& bytes) {
  static const std::vector<Subject> all = make_subjects();
  calls_left() = -1;
  return all[static_cast<std::size_t>(bytes.between(0, static_cast<Index>(all.size()) - 1))];
}

}  // namespace fuzz
