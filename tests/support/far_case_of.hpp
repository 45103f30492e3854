// How a far memory of the library becomes a case of the laws.
#pragma once

#include <phiattn/attention/attention.hpp>
#include <phiattn/memories/window.hpp>

#include "support/case_of.hpp"
#include "support/far_cases.hpp"

namespace laws {

/// @param make  (dv, options) -> an empty memory
template <class Make, class M = std::invoke_result_t<Make, Index, AttentionOptions>,
          class S = typename M::Scalar>
FarCase<S> far_case(std::string name, oracle::Frame frame, oracle::FarModel model, Make make) {
  const auto windowed = [make](Index window, Index dv, const AttentionOptions& options) {
    const AttentionOptions own = memory_options(options);
    return phiattn::Windowed<M>(window, make(dv, own), own);
  };
  return {std::move(name),
          std::move(frame),
          std::move(model),
          [make](Index dv, const AttentionOptions& options) {
            return Memory<S>(make(dv, memory_options(options)));
          },
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
inline phiattn::Reparametrisation reparametrisation(const oracle::Frame& frame) {
  return phiattn::Reparametrisation::shift(frame.query_shift.cast<double>().transpose(),
                                           frame.key_shift.cast<double>().transpose())
      .then(phiattn::Reparametrisation::diagonal(frame.psi.cast<double>().transpose()));
}

inline oracle::Frame centred_frame() {
  oracle::Frame frame = oracle::Frame::identity(kFarDimension);
  frame.query_shift = gaussian<double>(1, kFarDimension, kSeed, 0.5).template cast<Real>();
  frame.key_shift = gaussian<double>(1, kFarDimension, kSeed + 1, 0.5).template cast<Real>();
  return frame;
}

inline oracle::Frame balanced_frame() {
  oracle::Frame frame = centred_frame();
  frame.psi = gaussian<double>(1, kFarDimension, kSeed + 2, 0.3).array().exp().matrix().template cast<Real>();
  return frame;
}

inline Matrix<double> four_centres() { return gaussian<double>(4, kFarDimension, kSeed + 3); }

}  // namespace laws
