#pragma once

// All of phiattn, in the order in which it is best read: the rooms as the data walks, and no header includes a later room.

// clang-format off
#include <phiattn/core/abi.hpp>

PHIATTN_HUSH_BEGIN  // for those who included Eigen before

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/float_environment.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/prefetch.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/core/count.hpp>
#include <phiattn/core/scratch.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/output.hpp>
#include <phiattn/core/heads.hpp>
#include <phiattn/core/random.hpp>

#include <phiattn/positions/rotary.hpp>

#include <phiattn/feature_block.hpp>
#include <phiattn/similarity.hpp>
#include <phiattn/former_names.hpp>
#include <phiattn/former_calls.hpp>

#include <phiattn/masks/mask.hpp>
#include <phiattn/masks/score_rules.hpp>
#include <phiattn/masks/modifiers.hpp>

#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/kernels/gaussian.hpp>
#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/pairwise.hpp>
#include <phiattn/kernels/with.hpp>

#include <phiattn/projection/chi_quantile.hpp>
#include <phiattn/projection/radii.hpp>
#include <phiattn/projection/directions.hpp>
#include <phiattn/projection/hadamard.hpp>
#include <phiattn/projection/projection.hpp>
#include <phiattn/projection/favor_plusplus.hpp>

#include <phiattn/reparametrisation/reparametrisation.hpp>
#include <phiattn/reparametrisation/scaled_side.hpp>

#include <phiattn/feature_maps/feature_map_base.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/reparametrised.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/linear_layer.hpp>
#include <phiattn/feature_maps/elementwise.hpp>
#include <phiattn/feature_maps/dpfp.hpp>
#include <phiattn/feature_maps/hedgehog.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/nystrom.hpp>
#include <phiattn/feature_maps/spectra.hpp>
#include <phiattn/feature_maps/random_fourier.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>
#include <phiattn/feature_maps/fourier_pairs.hpp>
#include <phiattn/feature_maps/sketched_polynomial.hpp>
#include <phiattn/feature_maps/tensor_sketch.hpp>
#include <phiattn/feature_maps/random_maclaurin.hpp>
#include <phiattn/feature_maps/dijiang.hpp>
#include <phiattn/feature_maps/any.hpp>

#include <phiattn/attention/options.hpp>
#include <phiattn/attention/padding.hpp>
#include <phiattn/attention/tokens.hpp>
#include <phiattn/attention/row_sums.hpp>
#include <phiattn/attention/partial.hpp>
#include <phiattn/attention/row_results.hpp>
#include <phiattn/attention/memory.hpp>
#include <phiattn/attention/memory_loops.hpp>
#include <phiattn/attention/memory_base.hpp>
#include <phiattn/attention/map_ref.hpp>
#include <phiattn/attention/probes.hpp>
#include <phiattn/attention/state_scale.hpp>
#include <phiattn/attention/feature_scale.hpp>
#include <phiattn/attention/linear_core.hpp>
#include <phiattn/attention/linear_state.hpp>
#include <phiattn/attention/tiles.hpp>
#include <phiattn/attention/step.hpp>
#include <phiattn/attention/token_store.hpp>
#include <phiattn/attention/key_value_cache.hpp>
#include <phiattn/attention/any_memory.hpp>
#include <phiattn/attention/attend.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/attention/sequences.hpp>
#include <phiattn/attention/heads.hpp>
#include <phiattn/attention/head_memories.hpp>

#include <phiattn/memories/token_queue.hpp>
#include <phiattn/memories/far_memory.hpp>
#include <phiattn/memories/forgetful_memory.hpp>
#include <phiattn/memories/window.hpp>
#include <phiattn/memories/closure_options.hpp>
#include <phiattn/memories/closure_tokens.hpp>
#include <phiattn/memories/closure_block.hpp>
#include <phiattn/memories/closure_moments.hpp>
#include <phiattn/memories/closure_running.hpp>
#include <phiattn/memories/closure_read.hpp>
#include <phiattn/memories/closures.hpp>
#include <phiattn/memories/token_frame.hpp>
#include <phiattn/memories/gaussian_closure.hpp>
#include <phiattn/memories/nearest_centres.hpp>
#include <phiattn/memories/codebook.hpp>
#include <phiattn/memories/closure_mixture.hpp>
#include <phiattn/memories/cluster_store.hpp>
#include <phiattn/memories/bucket_read.hpp>
#include <phiattn/memories/cluster_read.hpp>
#include <phiattn/memories/cluster_memory.hpp>

#include <phiattn/fitting/calibration_data.hpp>
#include <phiattn/fitting/landmarks.hpp>
#include <phiattn/fitting/k_means.hpp>
#include <phiattn/fitting/balancing.hpp>
#include <phiattn/fitting/favor_plusplus.hpp>
#include <phiattn/fitting/importance.hpp>

#include <phiattn/analysis/error.hpp>
#include <phiattn/analysis/rank.hpp>
#include <phiattn/analysis/variance.hpp>
#include <phiattn/analysis/planner.hpp>
#include <phiattn/analysis/regime.hpp>
#include <phiattn/analysis/cheapest_memory.hpp>

#include <phiattn/constructions/sparse_pattern.hpp>

#include <phiattn/version.hpp>

PHIATTN_HUSH_END
