#pragma once

// Whether two memories sum the same thing.

#include <phiattn/attention/map_ref.hpp>
#include <phiattn/core/abi.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// Feature maps and kernels are known by what they make of a few fixed tokens, users' own included. Their parameters may
/// differ in the last bits from build to build, so that equal means equal to 1e-4.
template <class S>
struct Probes {
  static bool same_map(const MapRef<S>& a, const MapRef<S>& b, Index d, bool logarithms);
  static bool same_kernel(const KernelRef<S>& a, const KernelRef<S>& b, Index d);
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
extern template struct Probes<float>;
extern template struct Probes<double>;
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/attention/probes-inl.hpp>
#endif
