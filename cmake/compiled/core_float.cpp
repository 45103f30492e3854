#include "core.hpp"

PHIATTN_CORE(float)
