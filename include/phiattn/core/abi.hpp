#pragma once

// What translation units must agree on to share code.
//
// How wide vectors are, whether multiplications and additions fuse and how Eigen aligns what it allocates is each unit's
// choice, by its flags. All names live in an inline namespace made from it, so that units that chose otherwise do not
// share a function by accident. A unit that links phiattn::compiled and chose as the library did finds there what depends
// on the scalar alone and declares it `extern template`; any other instantiates its own, as header-only use does.

#if defined(__FAST_MATH__) && !defined(PHIATTN_ALLOW_FAST_MATH)
#error \
    "phiattn: -ffast-math (-Ofast) breaks the exponential's rounding and the containment of NaN; use -fno-math-errno -fno-trapping-math, or define PHIATTN_ALLOW_FAST_MATH to have it nevertheless"
#endif

/// gcc 12 warns of what its own AVX-512 header leaves undefined on purpose, wherever Eigen's packets are inlined into, even
/// from system headers. It is enough to hush one place of those that it was inlined through.
#if defined(__GNUC__) && !defined(__clang__)
#define PHIATTN_HUSH_BEGIN                                                             \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
      _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define PHIATTN_HUSH_END _Pragma("GCC diagnostic pop")
#else
#define PHIATTN_HUSH_BEGIN
#define PHIATTN_HUSH_END
#endif

PHIATTN_HUSH_BEGIN
#include <Eigen/Core>
PHIATTN_HUSH_END

#if defined(EIGEN_VECTORIZE_AVX512)
#define PHIATTN_VECTOR_BYTES 64
#elif defined(EIGEN_VECTORIZE_AVX)
#define PHIATTN_VECTOR_BYTES 32
#elif defined(EIGEN_VECTORIZE)
#define PHIATTN_VECTOR_BYTES 16
#else
#define PHIATTN_VECTOR_BYTES 0
#endif

#if EIGEN_MAX_ALIGN_BYTES == 64
#define PHIATTN_ALIGN_BYTES 64
#elif EIGEN_MAX_ALIGN_BYTES == 32
#define PHIATTN_ALIGN_BYTES 32
#elif EIGEN_MAX_ALIGN_BYTES == 16
#define PHIATTN_ALIGN_BYTES 16
#elif EIGEN_MAX_ALIGN_BYTES == 0
#define PHIATTN_ALIGN_BYTES 0
#else
#define PHIATTN_ALIGN_BYTES 8
#endif

#if defined(EIGEN_VECTORIZE_FMA) || defined(__FMA__)
#define PHIATTN_FUSES 1
#else
#define PHIATTN_FUSES 0
#endif

/// v32a32f1: 32-byte vectors, aligned so, fused.
#define PHIATTN_JOIN_AS_WRITTEN(vector, align, fuses) v##vector##a##align##f##fuses
#define PHIATTN_JOIN(vector, align, fuses) PHIATTN_JOIN_AS_WRITTEN(vector, align, fuses)
#define PHIATTN_ABI PHIATTN_JOIN(PHIATTN_VECTOR_BYTES, PHIATTN_ALIGN_BYTES, PHIATTN_FUSES)

/// The same as a number, which the target phiattn::compiled gives as PHIATTN_COMPILED_ABI.
#define PHIATTN_ABI_NUMBER (PHIATTN_VECTOR_BYTES * 10000 + PHIATTN_ALIGN_BYTES * 10 + PHIATTN_FUSES)

#if defined(PHIATTN_COMPILED_ABI)
#if PHIATTN_COMPILED_ABI == PHIATTN_ABI_NUMBER
#define PHIATTN_EXTERN 1
#endif
#endif
#if !defined(PHIATTN_EXTERN)
#define PHIATTN_EXTERN 0
#endif
