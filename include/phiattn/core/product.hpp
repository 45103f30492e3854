#pragma once

// The dense products of the library, in row-major blocks: compiled once for a scalar however many similarities there
// are.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/rows.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// A diagonal beyond every block: all entries count.
inline constexpr Index kNoDiagonal = Index{1} << 40;

/// out <- a b
template <class S>
void multiply(Rows<const S> a, Rows<const S> b, Rows<S> out);

/// out <- out + a b. With a diagonal, a(i, l) is 0 for l > i + diagonal, and is stored so.
template <class S>
void multiply_add(Rows<const S> a, Rows<const S> b, Rows<S> out, Index diagonal = kNoDiagonal);

/// out <- a b'. With a diagonal, out(i, j) is only wanted for j <= i + diagonal.
template <class S>
void multiply_transposed(Rows<const S> a, Rows<const S> b, Rows<S> out, Index diagonal = kNoDiagonal);

/// out <- out + a' b
template <class S>
void transposed_multiply_add(Rows<const S> a, Rows<const S> b, Rows<S> out);

/// One token of a recurrence: sums <- sums + b' v, then out <- a sums, in one pass over sums (m, dv), whose rows lie
/// one behind the other. The vectors a, b (m), v and out (dv) are rows.
template <class S>
void add_and_read(Rows<const S> b, Rows<const S> v, Rows<const S> a, Rows<S> sums, Rows<S> out);

/// Neither NaN nor infinity in x.
template <class S>
bool all_finite(Rows<const S> x);

}  // namespace phiattn::inline PHIATTN_ABI::detail

#define PHIATTN_PRODUCT_INSTANCES(prefix, S)                                                           \
  prefix template void multiply<S>(Rows<const S>, Rows<const S>, Rows<S>);                             \
  prefix template void multiply_add<S>(Rows<const S>, Rows<const S>, Rows<S>, Index);                  \
  prefix template void multiply_transposed<S>(Rows<const S>, Rows<const S>, Rows<S>, Index);           \
  prefix template void transposed_multiply_add<S>(Rows<const S>, Rows<const S>, Rows<S>);              \
  prefix template void add_and_read<S>(Rows<const S>, Rows<const S>, Rows<const S>, Rows<S>, Rows<S>); \
  prefix template bool all_finite<S>(Rows<const S>);

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
PHIATTN_PRODUCT_INSTANCES(extern, float)
PHIATTN_PRODUCT_INSTANCES(extern, double)
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/core/product-inl.hpp>
#endif
