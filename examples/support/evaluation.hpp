// What compare measures, and the maps it knows. Next: report.hpp.
#pragma once

#include <phiattn/phiattn.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
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

  /// Runs the similarity that `make()` returns, and measures. `out` is where its output goes.
  template <class Make>
  Result run(const Make& make, pa::Matrix<float>& out) const {
    Result result;
    out.resize(q_.rows(), v_.cols());
    // What the similarity itself holds on to (the frequencies, for one) is working memory too.
    const std::int64_t before = heap_meter::live();
    const auto similarity = make();
    heap_meter::reset_peak();
    result.seconds = time([&] { result.status = pa::attention(similarity, q_, k_, v_, out, options()); });
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
      pa::attention(similarity, last, k, units, all.middleCols(first, width), options());
    }
    return all;
  }

  pa::Matrix<float> q_, k_, v_;
  bool causal_;
  Reference reference_;
};

/// A map that compare knows.
struct Map {
  std::string name;   // in --maps and in JSON
  std::string title;  // in the table
  bool by_default;    // without --maps
  bool random;        // takes --features
  std::function<Result(const Trial&, Index features, pa::Matrix<float>& out)> run;
};

/// The baseline's name.
inline const std::string kUniform = "uniform";

inline constexpr bool kByDefault = true;
inline constexpr bool kWhenNamed = false;
inline constexpr bool kRandom = true;

/// `make(d, m)` returns the similarity for dimension d, with m features if they are for the user to choose.
template <class Make>
Map map(std::string name, std::string title, bool by_default, Make make, bool random = false) {
  return {name, title, by_default, random, [=](const Trial& trial, Index m, pa::Matrix<float>& out) {
            Result result = trial.run([&] { return make(trial.dimension(), m); }, out);
            result.map = name;
            result.title = title;
            return result;
          }};
}

/// The registry: a new map is a new line.
inline std::vector<Map> known_maps(std::uint64_t seed) {
  const auto softmax = [](Index, Index) { return pa::ExponentialKernel<float>(); };
  const auto performer = [seed](Index d, Index m) {
    return pa::PositiveRandomFeatures<float>(pa::sample_projection<float>(m, d, {.seed = seed}));
  };
  // As pa::TaylorFeatures and pa::ExponentialLimitFeatures, but one type for both: it is compiled once.
  const auto power = [](pa::TensorPower family, Index n) {
    return [=](Index d, Index) { return pa::TensorPowerFeatures<float>(family, d, n); };
  };
  constexpr auto kTaylor = pa::TensorPower::taylor;
  constexpr auto kLimit = pa::TensorPower::exponential_limit;
  const auto elu = [](Index d, Index) { return pa::EluFeatures<float>(d); };
  return {
      map("softmax", "exact softmax", kByDefault, softmax),
      map("performer", "Performer", kByDefault, performer, kRandom),
      map("taylor", "Taylor, degree 2", kByDefault, power(kTaylor, 2)),
      map("taylor3", "Taylor, degree 3", kWhenNamed, power(kTaylor, 3)),
      map("limit", "(1 + q.k/2)^2", kByDefault, power(kLimit, 2)),
      map("limit3", "(1 + q.k/3)^3", kWhenNamed, power(kLimit, 3)),
      map("limit4", "(1 + q.k/4)^4", kWhenNamed, power(kLimit, 4)),
      map("elu", "elu + 1", kByDefault, elu),
      map(kUniform, "uniform attention", kByDefault, power(kTaylor, 0)),
  };
}

}  // namespace examples
