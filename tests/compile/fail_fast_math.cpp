// expect: -ffast-math
#define __FAST_MATH__ 1
#include <phiattn/core/abi.hpp>
