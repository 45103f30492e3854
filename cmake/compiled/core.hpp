// What attention is made of, for one scalar.
#pragma once

#include <phiattn/attention/linear_core.hpp>
#include <phiattn/attention/memory_loops.hpp>
#include <phiattn/attention/probes.hpp>
#include <phiattn/attention/step.hpp>
#include <phiattn/attention/tiles.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/masks/score_rules.hpp>

static_assert(PHIATTN_LIBRARY_ABI == PHIATTN_ABI_NUMBER,
              "the library is built with other vectors than its target was configured for");

#define PHIATTN_CORE(S)                           \
  namespace phiattn::inline PHIATTN_ABI::detail { \
  PHIATTN_PRODUCT_INSTANCES(, S)                  \
  PHIATTN_LINEAR_INSTANCES(, S)                   \
  PHIATTN_STEP_INSTANCES(, S)                     \
  PHIATTN_INPUT_INSTANCES(, S)                    \
  template class MemoryLoops<S>;                  \
  template struct ScoreRules<S>;                  \
  template struct Probes<S>;                      \
  template class TiledAttention<S>;               \
  }
