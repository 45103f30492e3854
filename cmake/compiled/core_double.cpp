#include "core.hpp"

PHIATTN_CORE(double)
