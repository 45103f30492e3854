// The memory of one attention head, of whatever type.
#pragma once

#include <phiattn/attention/any_memory.hpp>

namespace examples {

namespace pa = phiattn;
using pa::Index;

using HeadMemory = pa::AnyMemory<float>;

}  // namespace examples
