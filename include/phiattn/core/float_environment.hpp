#pragma once

// The floating-point environment of the kernels.

#include <phiattn/core/abi.hpp>

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace phiattn::inline PHIATTN_ABI::detail {

/// As long as it lives this thread rounds to nearest, traps nothing and takes denormals for zero: the exponential needs
/// the first, a sum of nothing may take the logarithm of 0, and a column of denormals would cost 20 times as much.
/// Then everything is as the caller had it. On processors other than x86 and ARM's 64 bit it does nothing.
class FloatEnvironment {
 public:
  FloatEnvironment() : callers_(get()) {
    if (callers_ != kOurs) set(kOurs);
  }
  ~FloatEnvironment() {
    if (callers_ != kOurs) set(callers_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__SSE__)
  using Word = unsigned int;
  static constexpr Word kOurs = 0x9fc0;  // MXCSR: flush to zero, all masked, denormals are zero
  static Word get() { return _mm_getcsr(); }
  static void set(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__) && defined(__GNUC__)
  using Word = std::uint64_t;
  static constexpr Word kOurs = Word{1} << 24;  // FPCR: flush to zero
  static Word get() {
    Word word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set(Word word) { __asm__ volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
#else
  using Word = int;
  static constexpr Word kOurs = 0;
  static Word get() { return 0; }
  static void set(Word) {}
#endif

  Word callers_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
