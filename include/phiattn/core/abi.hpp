#pragma once

// Where the bodies of what is compiled once a scalar come from. Next: core/packet.hpp.
//
// A unit that links phiattn::compiled, and whose vectors and alignment are those that the library was built with, finds
// them there and declares them `extern template`; any other instantiates its own, as header-only use does.

#include <Eigen/Core>

/// Bytes of a vector register, whether multiplications and additions fuse, and the alignment of what Eigen allocates, in
/// one number: what units must agree on to share code.
#if defined(EIGEN_VECTORIZE_AVX512)
#define PHIATTN_VECTOR_BYTES 64
#elif defined(EIGEN_VECTORIZE_AVX)
#define PHIATTN_VECTOR_BYTES 32
#elif defined(EIGEN_VECTORIZE)
#define PHIATTN_VECTOR_BYTES 16
#else
#define PHIATTN_VECTOR_BYTES 0
#endif
#if defined(EIGEN_VECTORIZE_FMA) || defined(__FMA__)
#define PHIATTN_FUSES 1
#else
#define PHIATTN_FUSES 0
#endif
#define PHIATTN_ABI_NUMBER (PHIATTN_VECTOR_BYTES * 10000 + EIGEN_MAX_ALIGN_BYTES * 10 + PHIATTN_FUSES)

#if defined(PHIATTN_COMPILED_ABI)
#if PHIATTN_COMPILED_ABI == PHIATTN_ABI_NUMBER
#define PHIATTN_EXTERN 1
#endif
#endif
#if !defined(PHIATTN_EXTERN)
#define PHIATTN_EXTERN 0
#endif
