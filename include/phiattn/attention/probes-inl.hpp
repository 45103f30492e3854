#pragma once

// Included by attention/probes.hpp where that is not compiled elsewhere.

#include <phiattn/attention/probes.hpp>
#include <phiattn/core/workspace.hpp>

#include <algorithm>
#include <cmath>

namespace phiattn::inline PHIATTN_ABI::detail {

inline constexpr Index kProbes = 3;

/// Position of the first: maps that go by positions differ little at 0.
inline constexpr Index kProbePosition = 5;

/// Tokens of length about 1 in no special direction.
template <class S>
Rows<S> probe_tokens(Workspace::Frame& frame, Index d) {
  const Rows<S> x = frame.rows<S>(kProbes, d);
  const double size = std::sqrt(2.0 / static_cast<double>((std::max)(d, Index{1})));
  for (Index i = 0; i < kProbes; ++i) {
    for (Index l = 0; l < d; ++l)
      x(i, l) = static_cast<S>(size * std::sin(1 + 2.3 * static_cast<double>(i * d + l)));
  }
  return x;
}

/// Rows of logarithms, or of numbers, which come with the logarithms of what they are divided by.
template <class S>
bool alike(Rows<const S> a, const S* log_a, Rows<const S> b, const S* log_b, bool logarithms) {
  constexpr S kTolerance = S(1e-4);
  const auto close = [=](S x, S y, S size) { return x == y || std::abs(x - y) <= kTolerance * size; };
  for (Index i = 0; i < a.rows; ++i) {
    // Where all is 0 the factor is anything.
    const S shift = logarithms || !std::isfinite(log_b[i] - log_a[i]) ? S(0) : log_b[i] - log_a[i];
    S largest = 0;
    for (Index l = 0; l < a.cols; ++l) largest = (std::max)(largest, std::abs(a(i, l)));
    for (Index l = 0; l < a.cols; ++l) {
      const S x = logarithms ? a(i, l) + log_a[i] : a(i, l);
      const S y = logarithms ? b(i, l) + log_b[i] : b(i, l) * std::exp(shift);
      if (!close(x, y, logarithms ? 1 + std::abs(x) : largest)) return false;
    }
  }
  return true;
}

template <class S>
bool Probes<S>::same_map(const MapRef<S>& a, const MapRef<S>& b, Index d, bool logarithms) {
  if (a.features != b.features) return false;
  Workspace::Frame frame;
  const Rows<S> x = probe_tokens<S>(frame, d);
  const Rows<S> of_a = frame.rows<S>(kProbes, a.features), of_b = frame.rows<S>(kProbes, b.features);
  S *const log_a = frame.numbers<S>(kProbes), *const log_b = frame.numbers<S>(kProbes);
  for (const Side side : {Side::keys, Side::queries}) {
    a.fill(a.map, side, x, kProbePosition, of_a, log_a);
    b.fill(b.map, side, x, kProbePosition, of_b, log_b);
    if (!alike<S>(of_a, log_a, of_b, log_b, logarithms)) return false;
  }
  return true;
}

template <class S>
bool Probes<S>::same_kernel(const KernelRef<S>& a, const KernelRef<S>& b, Index d) {
  Workspace::Frame frame;
  const Rows<S> x = probe_tokens<S>(frame, d);
  const Rows<S> of_a = frame.rows<S>(kProbes, kProbes), of_b = frame.rows<S>(kProbes, kProbes);
  S *const log_a = frame.numbers<S>(kProbes), *const log_b = frame.numbers<S>(kProbes);
  std::fill_n(log_a, kProbes, S(0));
  std::fill_n(log_b, kProbes, S(0));
  a.fill(a.kernel, x, x, of_a, log_a);
  b.fill(b.kernel, x, x, of_b, log_b);
  return alike<S>(of_a, log_a, of_b, log_b, a.positive);
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
