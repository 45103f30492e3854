// The similarities that every law is tested with, behind one type per scalar: laws are compiled once, not once for
// each of them. They are listed in laws/cases_*.cpp; a new one is a line there.
#pragma once

#include <phiattn/attention/any_memory.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/oracle.hpp"

namespace laws {

using phiattn::AttentionOptions;
using phiattn::AttentionStatus;
using phiattn::Index;
using phiattn::Input;
using phiattn::Matrix;
using phiattn::Output;
using phiattn::Partial;

template <class S>
using Memory = phiattn::AnyMemory<S>;

static_assert(phiattn::Memory<Memory<float>> && phiattn::Memory<Memory<double>>);

template <class S>
struct Case {
  std::string name;
  bool positive;         // no weight is negative
  bool needs_dimension;  // refuses keys without dimensions: kernels do not

  /// The similarity by its formula, in long double.
  std::function<oracle::Similarity(Index d)> expected;
  /// phiattn::attention
  std::function<AttentionStatus(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                                const AttentionOptions& options)>
      attention;
  /// phiattn::attention_weights
  std::function<Matrix<S>(const Input<S>& q, const Input<S>& k, const AttentionOptions& options)> weights;
  /// The memory that the similarity implies.
  std::function<Memory<S>(Index d, Index dv, const AttentionOptions& options)> memory;
};

template <class S>
std::vector<Case<S>> kernels();
template <class S>
std::vector<Case<S>> random_features();
template <class S>
std::vector<Case<S>> taylor_features();
template <class S>
std::vector<Case<S>> exponential_limit_features();
template <class S>
std::vector<Case<S>> elu_features();
template <class S>
std::vector<Case<S>> distance_kernels();
template <class S>
std::vector<Case<S>> elementwise_features();
template <class S>
std::vector<Case<S>> nystrom_features();
template <class S>
std::vector<Case<S>> fourier_features();
template <class S>
std::vector<Case<S>> sketches();
template <class S>
std::vector<Case<S>> dijiang_features();
template <class S>
std::vector<Case<S>> wrapped_maps();
template <class S>
std::vector<Case<S>> memories();

/// Every similarity.
template <class S>
const std::vector<Case<S>>& all_cases() {
  static const std::vector<Case<S>> cases = [] {
    std::vector<Case<S>> all;
    for (const auto& family :
         {kernels<S>, random_features<S>, taylor_features<S>, exponential_limit_features<S>, elu_features<S>,
          distance_kernels<S>, elementwise_features<S>, nystrom_features<S>, fourier_features<S>, sketches<S>,
          dijiang_features<S>, wrapped_maps<S>, memories<S>}) {
      for (auto& one : family()) all.push_back(std::move(one));
    }
    return all;
  }();
  return cases;
}

}  // namespace laws
