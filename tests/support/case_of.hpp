// How a similarity of the library becomes a case of the laws.
#pragma once

#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>

#include "support/similarities.hpp"

namespace laws {

using phiattn::detail::memory_options;

/// Of any map, so that what is not the map's own is compiled once: laws/any_map_cases.cpp.
template <class S, class Tag>
Case<S> case_of_any_map(std::string name, bool positive,
                        std::function<phiattn::AnyFeatureMap<S, Tag>(Index d)> make,
                        std::function<oracle::Similarity(Index)> expected);

/// @param make      d -> the similarity under test
/// @param expected  d -> its formula
template <class Make, class F = std::invoke_result_t<Make, Index>, class S = typename F::Scalar>
Case<S> case_of(std::string name, bool positive, Make make,
                std::function<oracle::Similarity(Index)> expected) {
  if constexpr (phiattn::FeatureMap<F>) {
    return case_of_any_map<S, typename F::Kind>(
        std::move(name), positive, [make](Index d) { return phiattn::any_feature_map(make(d)); },
        std::move(expected));
  } else {
    return {std::move(name),
            positive,
            false,
            std::move(expected),
            [make](const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                   const AttentionOptions& options) {
              return phiattn::attention(make(q.cols()), q, k, v, out, options);
            },
            [make](const Input<S>& q, const Input<S>& k, const AttentionOptions& options) {
              return phiattn::attention_weights(make(q.cols()), q, k, options);
            },
            [make](Index d, Index dv, const AttentionOptions& options) {
              return Memory<S>(phiattn::KeyValueCache<F>(make(d), dv, memory_options(options)));
            }};
  }
}

/// @param needs_dimension  whether it refuses d = 0
/// @param make             (d, dv, options) -> an empty memory
/// @param expected         d -> the similarity that it has of every pair, nearby or far
template <class Make, class M = std::invoke_result_t<Make, Index, Index, AttentionOptions>,
          class S = typename M::Scalar>
Case<S> case_of_memory(std::string name, bool needs_dimension, Make make,
                       std::function<oracle::Similarity(Index)> expected) {
  // The memory owns the scale.
  const auto attend = [make](const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                             const AttentionOptions& options) {
    AttentionOptions call = options;
    call.scale.reset();
    return phiattn::attention(make(q.cols(), v.cols(), memory_options(options)), q, k, v, out, call);
  };
  return {std::move(name),
          true,
          needs_dimension,
          std::move(expected),
          attend,
          [attend](const Input<S>& q, const Input<S>& k, const AttentionOptions& options) {
            Matrix<S> weights(q.rows(), k.rows());
            attend(q, k, Matrix<S>::Identity(k.rows(), k.rows()), weights, options);
            return weights;
          },
          [make](Index d, Index dv, const AttentionOptions& options) {
            return Memory<S>(make(d, dv, memory_options(options)));
          }};
}

}  // namespace laws
