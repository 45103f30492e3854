#include "memories.hpp"

PHIATTN_MEMORIES(double)
