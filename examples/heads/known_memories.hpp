// The memories that compare knows: exact attention nearby, a summary of the rest.
#pragma once

#include <phiattn/phiattn.hpp>

#include <vector>

#include "map.hpp"

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

/// Exact attention to the 64 nearest tokens, memories of the others.
inline std::vector<Map> memories() {
  using T = const Trial&;
  return {
      map("window", "window alone", "exact to the 64 nearest tokens, nothing beyond", kWhenNamed,
          [](T, Index) { return window_alone(); }),
      map("closure", "closure", "the window, and one Gaussian of what is beyond", kByDefault,
          [](T t, Index) { return closure_memory(pa::key_centring(t.k())); }),
      map("closure-centred", "closure, centred *", "the same, about the mean query", kWhenNamed,
          [](T t, Index) { return closure_memory(pa::centring(t.q(), t.k())); }),
      map("mixture", "4 closures *", "the window, and 4 Gaussians of what is beyond", kWhenNamed,
          [](T t, Index) { return mixture_memory(t, 4); }),
      map("mixture16", "16 closures *", "the same, 16 Gaussians", kWhenNamed,
          [](T t, Index) { return mixture_memory(t, 16); }),
      map("clusters", "8 of 64 clusters *", "the window, and of 64 clusters the 8 that matter", kByDefault,
          [](T t, Index) { return cluster_memory(t, 8, 64); }),
      map("clusters128", "16 of 128 clust. *", "the same, 16 of 128", kWhenNamed,
          [](T t, Index) { return cluster_memory(t, 16, 128); }),
  };
}

}  // namespace examples
