// Figure 7: all of it on real heads: random features, polynomials, spectra, the three kernels.
#include <phiattn/analysis/error.hpp>
#include <phiattn/analysis/rank.hpp>
#include <phiattn/analysis/regime.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/gaussian.hpp>

#include <map>
#include <numbers>

#include "../../examples/heads/inputs.hpp"
#include "support/degrees.hpp"
#include "support/lab.hpp"
#include "support/maps.hpp"

namespace figures {

namespace {

namespace pa = phiattn;

struct HeadResult {
  double uniform = 0;
  std::map<std::pair<std::string, Index>, std::pair<Sample, Sample>>
      random;  // row L1, share of normalisers <= 0
  std::map<std::pair<bool, Index>, double> degrees;
  std::optional<pa::Spectrum> spectrum;
  double gaussian = 0, cosine = 0, own_key = 0;
};

HeadResult examine(const examples::Head& head, const std::vector<Index>& features, std::uint64_t seeds) {
  HeadResult result;
  const bool causal = head.causal.value();
  const auto causality = causal ? pa::Causality::causal : pa::Causality::none;
  const pa::Regime regime(head.q, head.k, {.causality = causality, .queries = 128});
  result.uniform = regime.uniform_row_l1();
  for (const RandomMap& map : random_maps()) {
    for (const Index m : features) {
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const pa::Expectation e = map.draw(regime, head.q, head.k, m, seed);
        result.random[{map.name, m}].first.add(e.row_l1);
        result.random[{map.name, m}].second.add(e.nonpositive_rows);
      }
    }
  }
  const Matrix<double> exact = softmax_weights(head.q, head.k, causal);
  for (const bool taylor : {true, false})
    for (const Index n : {1, 2, 3, 4, 6, 8, 12, 16})
      result.degrees[{taylor, n}] = degree_error(taylor, n, head.q, head.k, causal, exact);
  result.spectrum.emplace(exact);

  // exp(-|q - k|^2 / (2 sqrt d)) = exp(q.k / sqrt d) but for a bias on the norm of each key.
  const auto d = static_cast<double>(head.q.cols());
  result.gaussian = pa::row_l1_error(pa::attention_weights(pa::GaussianKernel<double>(std::pow(d, 0.25)),
                                                           head.q, head.k, {.causality = causality}),
                                     exact);
  // The temperature of cos(q, k) that the mean norms stand for.
  const double temperature = head.q.rowwise().norm().mean() * head.k.rowwise().norm().mean() / std::sqrt(d);
  result.cosine = pa::row_l1_error(
      pa::attention_weights(pa::CosineKernel<double>(temperature), head.q, head.k, {.causality = causality}),
      exact);
  for (Index i = 0; i < exact.rows(); ++i) {
    Index largest = 0;
    exact.row(i).maxCoeff(&largest);
    result.own_key += (largest == i) / static_cast<double>(exact.rows());
  }
  return result;
}

/// max |weight - explicit weight| of cosFormer, relu(q).relu(k) cos(pi (i - j) / (2 M)): linear, with relative positions.
double cosformer_difference(const examples::Head& head) {
  constexpr Index kTokens = 256;
  const auto q = head.q.topRows(kTokens), k = head.k.topRows(kTokens);
  Matrix<double> explicit_weights = q.cwiseMax(0) * k.cwiseMax(0).transpose();
  for (Index i = 0; i < kTokens; ++i) {
    for (Index j = 0; j < kTokens; ++j)
      explicit_weights(i, j) *= std::cos(std::numbers::pi / 2 * static_cast<double>(i - j) / kTokens);
    explicit_weights.row(i) /= explicit_weights.row(i).sum();
  }
  const phiattn::CosformerFeatures<double> map(q.cols(), kTokens);
  return pa::maximal_error(pa::attention_weights(map, q, k), explicit_weights);
}

}  // namespace

void real_heads(const Options& options, Claims& claims) {
  const std::uint64_t seeds = options.full ? 48 : 12;
  std::vector<Index> features{16, 64, 256, 1024};
  if (options.full) features.push_back(4096);
  const auto heads = examples::read_shipped_heads(PHIATTN_DATA_DIR "/heads", {}).heads;
  std::vector<HeadResult> results(heads.size());
  parallel_for(heads.size(), [&](std::size_t h) { results[h] = examine(heads[h], features, seeds); });

  Csv random(options, "heads_by_features.csv",
             "head,map,m,median,lower_quartile,upper_quartile,mean,nonpositive_rows,uniform");
  Csv degrees(options, "heads_by_degree.csv", "head,family,degree,row_l1,uniform");
  Csv spectra(options, "heads_spectra.csv", "head,index,singular_value");
  Csv kernels(options, "heads.csv",
              "head,uniform,gaussian,cosine,own_key,numerical,stable,entropy,energy_99");
  std::string useful, orthogonal, trig, rank, gaussian, own, taylor;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const HeadResult& r = results[h];
    const char* name = heads[h].name.c_str();
    for (const auto& [key, samples] : r.random) {
      random.row(name, key.first, key.second, columns(samples.first), samples.second.mean(), r.uniform);
    }
    for (const auto& [key, error] : r.degrees)
      degrees.row(name, key.first ? "Taylor" : "exponential limit", key.second, error, r.uniform);
    const pa::Spectrum& s = *r.spectrum;
    for (Index i = 0; i < s.values().size(); ++i)
      if (s.values()(i) > 1e-17 * s.values()(0)) spectra.row(name, i + 1, s.values()(i) / s.values()(0));
    kernels.row(name, r.uniform, r.gaussian, r.cosine, r.own_key, s.numerical_rank(), s.stable_rank(),
                s.entropy_rank(), s.energy_rank());

    const auto error = [&](const char* map, Index m = 256) { return r.random.at({map, m}).first.mean(); };
    useful += text("%s %.2f (%.2f); ", name, error("antithetic", 1024), r.uniform);
    orthogonal += text("%s %.2f; ", name, error("orthogonal") / error("iid"));
    trig += text("%s %.0f %%; ", name, 100 * r.random.at({"trigonometric", 256}).second.mean());
    taylor += text("%s %.2g; ", name, r.degrees.at({true, 8}));
    rank += text("%s %td, %td; ", name, s.numerical_rank(), s.energy_rank());
    gaussian += text("%s %.2f, %.2f; ", name, r.gaussian, r.cosine);
    own += text("%s %.0f %%; ", name, 100 * r.own_key);
  }
  const auto trimmed = [](const std::string& list) { return list.substr(0, list.size() - 2); };
  claims.add({"performer", "a trained softmax model cannot be run as Performer without retraining",
              "holds but for near-uniform heads", "row L1 at m = 1024 (uniform): " + trimmed(useful), "7"});
  claims.add({"performer", "orthogonal frequencies beat independent ones, on real heads",
              "makes no difference", "error ratio at m = 256: " + trimmed(orthogonal), "7"});
  claims.add({"performer", "positive features beat trigonometric ones, on real heads", "holds",
              "negative normalisers of trigonometric at m = 256: " + trimmed(trig), "7"});
  claims.add({"infinite", "polynomials approximate softmax attention, on real heads",
              "holds when scores are small", "row L1 of Taylor n = 8: " + trimmed(taylor), "7"});
  claims.add({"infinite", "softmax attention has a high rank, on real heads",
              "holds; near-uniform heads have their energy in few dimensions",
              "numerical rank, 99 % of the energy, of 1024: " + trimmed(rank), "7"});
  claims.add({"similarity", "distances and cosines model attention badly (withdrawn by its author)",
              "the Gaussian kernel is softmax with a bias −|k|²/2 on each key",
              "row L1 to softmax of Gaussian, cosine: " + trimmed(gaussian), "7"});
  claims.add({"similarity", "attention is not similarity: the largest weight need not be one's own", "holds",
              "queries that attend most to their own token: " + trimmed(own), "7"});
  claims.add({"performer", "linear attention cannot have relative positions",
              "does not hold for rotary ones and cosFormer",
              text("medium_* and hard_local carry rotary positions in q and k; cosFormer is its explicit "
                   "cos(π(i−j)/2M) up "
                   "to %.0e",
                   cosformer_difference(heads.front())),
              "7"});
}

}  // namespace figures
