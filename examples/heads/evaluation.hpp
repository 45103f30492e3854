// What compare measures.
#pragma once

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../support/heap_hooks.hpp"
#include "inputs.hpp"

namespace examples {

namespace pa = phiattn;
using pa::Index;

/// Exact softmax attention of one head in double: what every map is measured against.
struct Reference {
  pa::Matrix<double> out, weights;
};

/// One row of the table.
struct Result {
  std::string map;
  std::string title;
  std::optional<Index> features;  // none: a kernel
  double seconds = 0;             // median
  std::optional<std::int64_t> working_bytes;
  double output_error = 0;
  double row_l1 = 0;
  pa::AttentionStatus status;
};

/// Weight matrices are looked at for so many queries, the last ones, and for so many keys at a time: long
/// heads need no (n, n) matrix.
inline constexpr Index kWeightRows = 1024;
inline constexpr Index kWeightColumns = 1024;

/// Attention with some similarity or memory: compare's own code is compiled once for all of them.
struct Operator {
  std::function<pa::AttentionStatus(const pa::Input<float>& q, const pa::Input<float>& k,
                                    const pa::Input<float>& v, const pa::Output<float>& out,
                                    const pa::AttentionOptions& options)>
      attend;
  std::optional<Index> features;  // none: a kernel or a memory of keys
};

inline Operator operator_of(Operator already) { return already; }

template <pa::Kernel F>
Operator operator_of(F kernel) {
  return {[kernel = std::move(kernel)](auto&&... arguments) { return pa::attention(kernel, arguments...); },
          {}};
}

template <pa::FeatureMap F>
Operator operator_of(F map) {
  const Index features = map.feature_dimension();
  return {[map = pa::any_feature_map(std::move(map))](auto&&... arguments) {
            return pa::attention(map, arguments...);
          },
          features};
}

/// `make(dv)` returns an empty memory.
template <class Make>
Operator operator_of_memory(Make make) {
  return {[make = std::move(make)](const auto& q, const auto& k, const auto& v, auto&&... rest) {
            return pa::attention(make(v.cols()), q, k, v, rest...);
          },
          {}};
}

/// One head and causality. The maps are run in float, the reference in double.
class Trial {
 public:
  Trial(const Head& head, bool causal)
      : q_(head.q.cast<float>()), k_(head.k.cast<float>()), v_(head.v.cast<float>()), causal_(causal) {
    const auto exact = [](auto&&... arguments) {
      return pa::attention(pa::ExponentialKernel<double>(), arguments...);
    };
    reference_.out.resize(head.q.rows(), head.v.cols());
    exact(head.q, head.k, head.v, reference_.out, options());
    reference_.weights = weights(exact, head.q, head.k);
  }

  Index dimension() const { return k_.cols(); }

  /// What maps may be calibrated on.
  const pa::Matrix<float>& q() const { return q_; }
  const pa::Matrix<float>& k() const { return k_; }

  /// Runs what `make()` returns, and measures. `out` is where its output goes.
  Result run(const std::function<Operator()>& make, pa::Matrix<float>& out) const {
    Result result;
    out.resize(q_.rows(), v_.cols());
    // What the similarity itself holds on to (the frequencies, for one) is working memory too.
    const std::int64_t before = heap_meter::live();
    const Operator similarity = make();
    heap_meter::reset_peak();
    result.seconds = time([&] { result.status = similarity.attend(q_, k_, v_, out, options()); });
    if (heap_meter::kHeapIsMetered) result.working_bytes = heap_meter::peak() - before;
    result.features = similarity.features;
    result.output_error = pa::relative_frobenius_error(out, reference_.out);
    result.row_l1 = pa::row_l1_error(weights(similarity.attend, q_, k_), reference_.weights);
    return result;
  }

 private:
  pa::AttentionOptions options() const {
    return {.causality = causal_ ? pa::Causality::causal : pa::Causality::none};
  }

  /// The median of a few runs, of one if it takes long.
  template <class Call>
  static double time(const Call& call) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t kRuns = 5;
    constexpr double kLong = 1;  // second
    std::vector<double> seconds;
    while (seconds.size() < kRuns && (seconds.empty() || seconds.front() < kLong)) {
      const auto start = Clock::now();
      call();
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<long>(seconds.size() / 2), seconds.end());
    return seconds[seconds.size() / 2];
  }

  /// pa::attention_weights of the last queries, put together from blocks of keys.
  template <class Attend, class T>
  pa::Matrix<T> weights(const Attend& attend, const pa::Matrix<T>& q, const pa::Matrix<T>& k) const {
    const auto last = q.bottomRows(std::min(q.rows(), kWeightRows));
    pa::Matrix<T> all(last.rows(), k.rows());
    for (Index first = 0; first < k.rows(); first += kWeightColumns) {
      const Index width = std::min(kWeightColumns, k.rows() - first);
      pa::Matrix<T> units = pa::Matrix<T>::Zero(k.rows(), width);
      units.middleRows(first, width).setIdentity();
      attend(last, k, units, all.middleCols(first, width), options());
    }
    return all;
  }

  pa::Matrix<float> q_, k_, v_;
  bool causal_;
  Reference reference_;
};

}  // namespace examples
