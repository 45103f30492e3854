#include "memories.hpp"

PHIATTN_MEMORIES(float)
