#include <phiattn/attention/attention.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/window.hpp>

#include "support/case_of.hpp"
#include "support/far_cases.hpp"

namespace laws {
namespace {

/// @param make  (dv, options) -> an empty memory
template <class Make, class M = std::invoke_result_t<Make, Index, AttentionOptions>,
          class S = typename M::Scalar>
FarCase<S> far_case(std::string name, oracle::Frame frame, oracle::FarModel model, Make make) {
  const auto windowed = [make](Index window, Index dv, const AttentionOptions& options) {
    return phiattn::Windowed<M>(window, make(dv, options), options);
  };
  return {std::move(name),
          std::move(frame),
          std::move(model),
          [make](Index dv, const AttentionOptions& options) { return Memory<S>(make(dv, options)); },
          [windowed](Index window, Index dv, const AttentionOptions& options) {
            return Memory<S>(windowed(window, dv, options));
          },
          [windowed](Index window, const Problem<S>& problem) {
            AttentionOptions call = problem.options;
            call.scale.reset();  // the memory owns it
            return phiattn::attention(windowed(window, problem.v.cols(), problem.options), problem.q,
                                      problem.k, problem.v, call);
          }};
}

/// The same in the library's terms.
phiattn::Reparametrisation reparametrisation(const oracle::Frame& frame) {
  return phiattn::Reparametrisation::shift(frame.query_shift.cast<double>().transpose(),
                                           frame.key_shift.cast<double>().transpose())
      .then(phiattn::Reparametrisation::diagonal(frame.psi.cast<double>().transpose()));
}

}  // namespace

template <class S>
const std::vector<FarCase<S>>& far_cases() {
  using namespace phiattn;
  constexpr Index d = kFarDimension;
  static const std::vector<FarCase<S>> cases = [] {
    const auto plain = oracle::Frame::identity(d);
    oracle::Frame centred = plain;
    centred.query_shift = gaussian<double>(1, d, kSeed, 0.5).template cast<Real>();
    centred.key_shift = gaussian<double>(1, d, kSeed + 1, 0.5).template cast<Real>();
    oracle::Frame balanced = centred;
    balanced.psi = gaussian<double>(1, d, kSeed + 2, 0.3).array().exp().matrix().template cast<Real>();
    const Matrix<double> centres = gaussian<double>(4, d, kSeed + 3);
    const oracle::Matrix real_centres = centres.template cast<Real>();
    return std::vector<FarCase<S>>{
        far_case(
            "closure", plain, oracle::closure(0.35L),
            [](Index dv, const AttentionOptions& options) { return GaussianClosure<S>(d, dv, {}, options); }),
        far_case("diagonal closure", centred, oracle::closure(0.2L, true),
                 [=](Index dv, const AttentionOptions& options) {
                   return GaussianClosure<S>(reparametrisation(centred), dv,
                                             {.covariance = Covariance::diagonal, .freezing = 0.2}, options);
                 }),
        far_case("centred and balanced closure", balanced, oracle::closure(0.35L),
                 [=](Index dv, const AttentionOptions& options) {
                   return GaussianClosure<S>(reparametrisation(balanced), dv, {}, options);
                 }),
        far_case("mixture of closures", centred, oracle::mixture(real_centres, 0.35L),
                 [=](Index dv, const AttentionOptions& options) {
                   return ClosureMixture<S>(centres, reparametrisation(centred), dv, {}, options);
                 }),
        far_case("clusters, one of them read", balanced, oracle::clusters(real_centres, 1, 0.35L),
                 [=](Index dv, const AttentionOptions& options) {
                   return ClusterMemory<S>(centres, reparametrisation(balanced), dv, {.top = 1}, options);
                 }),
        far_case("clusters, none of them read", plain, oracle::clusters(real_centres, 0, 0.35L),
                 [=](Index dv, const AttentionOptions& options) {
                   return ClusterMemory<S>(centres, reparametrisation(plain), dv, {.top = 0}, options);
                 })};
  }();
  return cases;
}

template const std::vector<FarCase<float>>& far_cases();
template const std::vector<FarCase<double>>& far_cases();

}  // namespace laws
