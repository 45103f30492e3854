// What compare measures. Next: known_memories.hpp.
#pragma once

#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heap_meter.hpp"
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

/// An empty memory for values of any dv, in place of a similarity.
template <class Make>
struct MemoryMaker {
  Make make;
};

template <class F>
pa::AttentionStatus attend(const F& similarity, const pa::Input<typename F::Scalar>& q,
                           const pa::Input<typename F::Scalar>& k, const pa::Input<typename F::Scalar>& v,
                           const pa::Output<typename F::Scalar>& out, const pa::AttentionOptions& options) {
  return pa::attention(similarity, q, k, v, out, options);
}

template <class Make>
pa::AttentionStatus attend(const MemoryMaker<Make>& memory, const pa::Input<float>& q,
                           const pa::Input<float>& k, const pa::Input<float>& v, const pa::Output<float>& out,
                           const pa::AttentionOptions& options) {
  return pa::attention(memory.make(v.cols()), q, k, v, out, options);
}

/// One head and causality. The maps are run in float, the reference in double.
class Trial {
 public:
  Trial(const Head& head, bool causal)
      : q_(head.q.cast<float>()), k_(head.k.cast<float>()), v_(head.v.cast<float>()), causal_(causal) {
    const pa::ExponentialKernel<double> softmax;
    reference_ = {pa::attention(softmax, head.q, head.k, head.v, options()),
                  weights(softmax, head.q, head.k)};
  }

  Index dimension() const { return k_.cols(); }

  /// What maps may be calibrated on.
  const pa::Matrix<float>& q() const { return q_; }
  const pa::Matrix<float>& k() const { return k_; }

  /// Runs the similarity that `make()` returns, and measures. `out` is where its output goes.
  template <class Make>
  Result run(const Make& make, pa::Matrix<float>& out) const {
    Result result;
    out.resize(q_.rows(), v_.cols());
    // What the similarity itself holds on to (the frequencies, for one) is working memory too.
    const std::int64_t before = heap_meter::live();
    const auto similarity = make();
    heap_meter::reset_peak();
    result.seconds = time([&] { result.status = attend(similarity, q_, k_, v_, out, options()); });
    if (heap_meter::kHeapIsMetered) result.working_bytes = heap_meter::peak() - before;
    if constexpr (requires { similarity.feature_dimension(); })
      result.features = similarity.feature_dimension();
    result.output_error = pa::relative_frobenius_error(out, reference_.out);
    result.row_l1 = pa::row_l1_error(weights(similarity, q_, k_), reference_.weights);
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
  template <class F, class T>
  pa::Matrix<T> weights(const F& similarity, const pa::Matrix<T>& q, const pa::Matrix<T>& k) const {
    const auto last = q.bottomRows(std::min(q.rows(), kWeightRows));
    pa::Matrix<T> all(last.rows(), k.rows());
    for (Index first = 0; first < k.rows(); first += kWeightColumns) {
      const Index width = std::min(kWeightColumns, k.rows() - first);
      pa::Matrix<T> units = pa::Matrix<T>::Zero(k.rows(), width);
      units.middleRows(first, width).setIdentity();
      attend(similarity, last, k, units, all.middleCols(first, width), options());
    }
    return all;
  }

  pa::Matrix<float> q_, k_, v_;
  bool causal_;
  Reference reference_;
};

}  // namespace examples
