// The memories that compare knows: exact attention nearby, a summary of the rest. Next: known_maps.hpp.
#pragma once

#include <phiattn/phiattn.hpp>

#include "evaluation.hpp"

namespace examples {

/// Tokens that are near.
inline constexpr Index kWindow = 64;

/// Centred keys, then both sides of one size in each coordinate.
inline pa::Reparametrisation balanced(const Trial& trial) {
  const auto centred = pa::key_centring(trial.k());
  return centred.then(pa::diagonal_balance(centred.queries(trial.q()), centred.keys(trial.k())));
}

/// Windowed(64, far), where `far(dv)` makes the far memory.
template <class Far>
Operator windowed(Far far) {
  return operator_of_memory([far](Index dv) { return pa::Windowed(kWindow, far(dv)); });
}

inline Operator window_alone() {
  return windowed([](Index dv) { return pa::ForgetfulMemory<float>(dv); });
}

inline Operator closure_memory(const pa::Reparametrisation& reparametrisation) {
  return windowed([=](Index dv) { return pa::GaussianClosure<float>(reparametrisation, dv); });
}

inline Operator mixture_memory(const Trial& trial, Index closures) {
  const auto r = balanced(trial);
  return windowed([r, centres = pa::k_means(r.keys(trial.k()), closures)](Index dv) {
    return pa::ClosureMixture<float>(centres, r, dv);
  });
}

inline Operator cluster_memory(const Trial& trial, Index top, Index clusters) {
  const auto r = balanced(trial);
  return windowed([r, top, centres = pa::k_means(r.keys(trial.k()), clusters)](Index dv) {
    return pa::ClusterMemory<float>(centres, r, dv, {.top = top});
  });
}

}  // namespace examples
