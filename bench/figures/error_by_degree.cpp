// Figure 3: error of the Taylor polynomial and of the exponential limit against their degree, and what degrees cost.
#include <phiattn/analysis/error.hpp>
#include <phiattn/analysis/planner.hpp>
#include <phiattn/analysis/regime.hpp>
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include <map>

#include "support/degrees.hpp"
#include "support/lab.hpp"
#include "support/maps.hpp"

namespace figures {

namespace {

namespace pa = phiattn;

}  // namespace

double degree_error(bool taylor, Index degree, const Matrix<double>& q, const Matrix<double>& k, bool causal,
                    const Matrix<double>& exact) {
  const auto kernel = taylor ? pa::PolynomialKernel<double>::taylor(degree)
                             : pa::PolynomialKernel<double>::exponential_limit(degree);
  return pa::row_l1_error(
      pa::attention_weights(kernel, q, k,
                            {.causality = causal ? pa::Causality::causal : pa::Causality::none}),
      exact);
}

Matrix<double> softmax_weights(const Matrix<double>& q, const Matrix<double>& k, bool causal) {
  return pa::attention_weights(pa::ExponentialKernel<double>(), q, k,
                               {.causality = causal ? pa::Causality::causal : pa::Causality::none});
}

void error_by_degree(const Options& options, Claims& claims) {
  constexpr Index kTokens = 128;
  constexpr Index kDegrees = 16;
  const std::uint64_t seeds = options.full ? 50 : 12;

  Csv csv(options, "error_by_degree.csv",
          "sigma,family,degree,median,lower_quartile,upper_quartile,mean,uniform");
  std::map<std::tuple<double, bool, Index>, double> error;
  for (const double sigma : {0.25, 0.5, 1.0, 2.0}) {
    std::map<std::pair<bool, Index>, Sample> samples;
    Sample uniform;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Matrix<double> q = gaussian(kTokens, 64, sigma, seed, 11),
                           k = gaussian(kTokens, 64, sigma, seed, 12);
      const Matrix<double> exact = softmax_weights(q, k, false);
      uniform.add(pa::row_l1_error(Matrix<double>::Constant(kTokens, kTokens, 1.0 / kTokens), exact));
      for (const bool taylor : {true, false}) {
        for (Index n = 1; n <= kDegrees; ++n)
          samples[{taylor, n}].add(degree_error(taylor, n, q, k, false, exact));
      }
    }
    for (const auto& [key, sample] : samples) {
      error[{sigma, key.first, key.second}] = sample.median();
      csv.row(sigma, key.first ? "Taylor" : "exponential limit", key.second, columns(sample), uniform.mean());
    }
  }

  Csv dimensions(options, "dimensions.csv", "d,degree,symmetric,full_taylor,full_limit");
  for (const Index d : {16, 64}) {
    double symmetric = 1, taylor = 1, power = 1;
    for (Index n = 1; n <= 8; ++n) {
      symmetric *= static_cast<double>(d + n) / static_cast<double>(n);
      power *= static_cast<double>(d);
      taylor += power;
      dimensions.row(d, n, symmetric, taylor, std::pow(static_cast<double>(d + 1), static_cast<double>(n)));
    }
  }

  // At as many features as the polynomial has, d = 16.
  Csv equal(options, "polynomials_and_random_features.csv",
            "sigma,map,m,median,lower_quartile,upper_quartile,mean");
  std::string ratios;
  for (const double sigma : {0.5, 1.0, 2.0}) {
    for (Index n = 1, m = 17; n <= (options.full ? 4 : 3); ++n, m = m * (16 + n) / n) {
      std::map<std::string, Sample> samples;
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const Matrix<double> q = gaussian(kTokens, 16, sigma, seed, 11),
                             k = gaussian(kTokens, 16, sigma, seed, 12);
        const Matrix<double> exact = softmax_weights(q, k, false);
        const pa::Regime regime(q, k, {.queries = kTokens});
        samples["Taylor"].add(degree_error(true, n, q, k, false, exact));
        samples["uniform"].add(regime.uniform_row_l1());
        for (const RandomMap& map : random_maps())
          if (map.name == "antithetic fixed" || map.name == "iid")
            samples[map.name].add(map.draw(regime, q, k, m, seed).row_l1);
      }
      for (const auto& [name, sample] : samples) equal.row(sigma, name, m, columns(sample));
      if (n == 2) {
        ratios += text("%.3f and %.3f at σ = %g; ", samples["Taylor"].mean(),
                       samples["antithetic fixed"].mean(), sigma);
      }
    }
  }

  const auto at = [&](double sigma, bool taylor, Index n) { return error.at({sigma, taylor, n}); };
  claims.add({"infinite", "Σ (q·k)^i/i! for i ≤ n → exp(q·k)", "holds",
              text("d = 64, error at n = 2, 4, 8: %.4f, %.1e, %.1e at σ = 0.5; %.2f, %.3f, %.1e at σ = 1; "
                   "%.2f, %.2f, %.2f "
                   "at σ = 2",
                   at(0.5, true, 2), at(0.5, true, 4), at(0.5, true, 8), at(1, true, 2), at(1, true, 4),
                   at(1, true, 8), at(2, true, 2), at(2, true, 4), at(2, true, 8)),
              "3"});
  claims.add(
      {"infinite", "(1 + q·k/n)^n → exp(q·k)", "holds, slowly: error ∝ 1/n",
       text("σ = 0.5: %.3f, %.3f, %.3f at n = 2, 4, 8, which is %.0f times that of Taylor at n = 4",
            at(0.5, false, 2), at(0.5, false, 4), at(0.5, false, 8), at(0.5, false, 4) / at(0.5, true, 4)),
       "3"});
  claims.add({"infinite", "m = d^n, usually beyond n tokens", "holds, with C(d+n, n) in place of d^n",
              "d = 64: 2145 of 4161 for n = 2, 47 905 of 266 305 for n = 3; beyond 1024 tokens from n = 2 on",
              "3"});
  claims.add(
      {"infinite", "far inferior to random features in practice", "does not hold at equal m",
       "error of Taylor n = 2 and of 153 antithetic features, d = 16: " + ratios.substr(0, ratios.size() - 2),
       "3"});
}

}  // namespace figures
