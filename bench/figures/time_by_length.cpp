// Figure 2: processor time of one call on one core against the number of tokens, and where linear attention overtakes softmax.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/feature_maps/trigonometric.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <ctime>
#include <optional>

#include "support/lab.hpp"

namespace figures {

namespace {

namespace pa = phiattn;
using Positive = pa::AnyFeatureMap<float, pa::LogFeatureMapTag>;
using Signed = pa::AnyFeatureMap<float, pa::SignedFeatureMapTag>;

constexpr Index kD = 64;

struct Timed {
  std::string name;
  std::function<void(const Matrix<float>&, const Matrix<float>&, const Matrix<float>&, Matrix<float>&,
                     const pa::AttentionOptions&)>
      call;
  double longest;  // tokens: beyond, the figure would take all day
};

template <class F>
Timed timed(std::string name, const F& similarity, double longest) {
  return {
      std::move(name),
      [similarity](const auto& q, const auto& k, const auto& v, auto& out,
                   const pa::AttentionOptions& options) { pa::attention(similarity, q, k, v, out, options); },
      longest};
}

/// Median of the processor's seconds (what else the machine does costs none) of at least 3 calls, of as many as fit into
/// a third of a second, after one to warm up.
template <class Call>
double seconds(const Call& call) {
  Sample sample;
  call();
  const std::clock_t start = std::clock();
  while (sample.values.size() < 3 || std::clock() - start < CLOCKS_PER_SEC / 3) {
    const std::clock_t before = std::clock();
    // Short calls come in dozens: the clock has a grain.
    int calls = 0;
    while (calls == 0 || std::clock() - before < CLOCKS_PER_SEC / 200) {
      call();
      ++calls;
    }
    sample.add(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / calls);
  }
  return sample.median();
}

/// Where the line through the points of the one, on logarithmic axes, crosses that of the other, if it does.
std::optional<double> crossover(const std::vector<Index>& n, const std::vector<double>& map,
                                const std::vector<double>& softmax) {
  for (std::size_t i = 1; i < std::min(map.size(), softmax.size()); ++i) {
    const double before = std::log(map[i - 1] / softmax[i - 1]), after = std::log(map[i] / softmax[i]);
    if (before > 0 && after <= 0) {
      const double share = before / (before - after);
      return static_cast<double>(n[i - 1]) *
             std::pow(static_cast<double>(n[i]) / static_cast<double>(n[i - 1]), share);
    }
  }
  return std::nullopt;
}

std::vector<Timed> timed_maps(bool full) {
  const double longest = full ? 65536 : 16384;
  const auto performer = [](Index m) {
    return Positive(pa::PositiveRandomFeatures<float>(pa::sample_projection<float>(m, kD)));
  };
  return {timed("softmax", pa::ExponentialKernel<float>(), full ? 32768 : 8192),
          timed("elu + 1", Positive(pa::EluFeatures<float>(kD)), longest),
          timed("Performer m = 64", performer(64), longest),
          timed("Performer m = 256", performer(256), longest),
          timed("Performer m = 1024", performer(1024), longest),
          timed("trigonometric m = 256",
                Signed(pa::TrigonometricFeatures<float>(
                    pa::sample_projection<float>(128, kD, {.antithetic = false}))),
                longest),
          timed("Taylor n = 2 (m = 2145)", Signed(pa::TaylorFeatures<float>(kD, 2)), longest)};
}

}  // namespace

void time_by_length(const Options& options, Claims& claims) {
  Csv csv(options, "time_by_length.csv", "causal,map,n,seconds");
  Csv crossings(options, "crossovers.csv", "causal,map,n,seconds");
  std::string found[2];
  std::string slopes;
  double plain = 0, projected = 0;  // elu + 1 and Performer of as many features
  for (const bool causal : {false, true}) {
    std::vector<double> softmax;
    for (const Timed& map : timed_maps(options.full)) {
      std::vector<Index> lengths;
      std::vector<double> times, log_n, log_t;
      for (Index n = 64; static_cast<double>(n) <= map.longest; n *= 2) {
        const Matrix<float> q = gaussian(n, kD, 0.5, 0, 21).cast<float>(),
                            k = gaussian(n, kD, 0.5, 0, 22).cast<float>(),
                            v = gaussian(n, kD, 1, 0, 23).cast<float>();
        Matrix<float> out(n, kD);
        const pa::AttentionOptions how{.causality = causal ? pa::Causality::causal : pa::Causality::none};
        lengths.push_back(n);
        times.push_back(seconds([&] { map.call(q, k, v, out, how); }));
        if (n >= 1024) {
          log_n.push_back(std::log(static_cast<double>(n)));
          log_t.push_back(std::log(times.back()));
        }
        csv.row(causal ? 1 : 0, map.name, n, times.back());
      }
      if (!causal && (map.name == "softmax" || map.name == "Performer m = 256"))
        slopes += text("%s n^%.2f; ", map.name.c_str(), Line(log_n, log_t).slope);
      if (!causal && map.name == "elu + 1") plain = times.back();
      if (!causal && map.name == "Performer m = 64") projected = times.back();
      if (softmax.empty()) {
        softmax = times;
        continue;
      }
      const auto at = crossover(lengths, times, softmax);
      if (at) {
        const double share = std::log2(*at / 64);
        const auto i = static_cast<std::size_t>(share);
        crossings.row(causal ? 1 : 0, map.name, *at,
                      times[i] * std::pow(times[i + 1] / times[i], share - static_cast<double>(i)));
      }
      found[causal] += text("%s %s; ", map.name.c_str(),
                            at                                 ? text("%.0f", *at).c_str()
                            : times.front() <= softmax.front() ? "from the start"
                                                               : "not yet");
    }
  }
  claims.add({"performer", "cost O(n) instead of O(n²)", "holds", slopes.substr(0, slopes.size() - 2), "2"});
  claims.add({"performer", "faster than softmax from n ≈ 5000 on", "depends on m: see the crossovers",
              "full: " + found[0] + "causal: " + found[1].substr(0, found[1].size() - 2), "2"});
  claims.add({"performer",
              "with a projection on top it cannot be faster than a plain map of as many features",
              projected > plain ? "holds" : "does not hold here: exp costs less than elu",
              text("Performer m = 64 takes %.2f times as long as elu + 1, m = 64", projected / plain), "2"});
}

}  // namespace figures
