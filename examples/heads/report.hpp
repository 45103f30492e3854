// How compare prints its results: as tables or as JSON.
#pragma once

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../support/json.hpp"
#include "known_maps.hpp"

namespace examples {

/// What was run on one head, one way.
struct Experiment {
  const Head& head;
  bool causal;
  std::vector<Result> results;
  Result uniform;  // the baseline, whether it is among the results or not
};

/// Whether a map does better than uniform attention; an error that is NaN does not.
struct Verdict {
  bool output, weights;

  Verdict(const Result& result, const Result& uniform)
      : output(result.output_error < uniform.output_error), weights(result.row_l1 < uniform.row_l1) {}

  bool both() const { return output && weights; }

  const char* text() const {
    return both() ? "yes" : output ? "output only" : weights ? "weights only" : "no";
  }
};

namespace detail {

/// 0.2655, 12.35, 1.2e-07, nan
inline std::string error_text(double error) {
  if (std::isnan(error)) return "nan";  // of no sign
  return format(std::isfinite(error) && (error == 0 || (error >= 1e-3 && error < 1e3)) ? "%.4f" : "%.1e",
                error);
}

}  // namespace detail

inline constexpr const char* kTableHead =
    "time          median of a few runs on one core\n"
    "memory        heap at its peak, beyond q, k, v and the output; - if this build cannot measure it\n"
    "output error  |out - exact|_F / |exact|_F; exact: softmax attention in double\n"
    "row L1        sum_j |weight_j - exact weight_j|, at most 2 if no weight is negative:\n"
    "              the mean of all queries, of the last 1024 if there are more\n"
    "beats uniform whether both errors are less than if every key weighed the same\n";

inline constexpr const char* kTableFoot =
    "\nLower is better; 'no' is worse than a plain average of v, as Performer is for long q and k.\n";

inline void print_table_head() { std::printf("%s", kTableHead); }

inline void print_table(const Experiment& experiment) {
  const Head& head = experiment.head;
  const Index n_q = head.q.rows();
  const Index n_k = head.k.rows();
  const std::string tokens = n_q == n_k ? "n = " + std::to_string(n_k)
                                        : std::to_string(n_q) + " queries, " + std::to_string(n_k) + " keys";
  std::printf("\n%s: %s attention, %s, d = %td%s%s\n", head.name.c_str(),
              experiment.causal ? "causal" : "full", tokens.c_str(), head.k.cols(),
              head.source.empty() ? "" : ", from ", head.source.c_str());
  std::printf("  %-20s %9s %10s %13s %14s %10s   %s\n", "map", "features", "time [ms]", "memory [KiB]",
              "output error", "row L1", "beats uniform");
  for (const Result& result : experiment.results) {
    const std::string features = result.features ? std::to_string(*result.features) : "-";
    const std::string memory =
        result.working_bytes ? format("%.0f", static_cast<double>(*result.working_bytes) / 1024) : "-";
    const char* verdict =
        result.map == experiment.uniform.map ? "baseline" : Verdict(result, experiment.uniform).text();
    std::printf("  %-20s %9s %10.2f %13s %14s %10s   %s\n", result.title.c_str(), features.c_str(),
                result.seconds * 1e3, memory.c_str(), detail::error_text(result.output_error).c_str(),
                detail::error_text(result.row_l1).c_str(), verdict);
    if (!result.status.ok()) {
      std::printf(
          "    the normaliser (sum of weights) is not positive in %td rows, the first of them row %td\n",
          result.status.nonpositive_rows, result.status.first_nonpositive_row);
    }
  }
  std::fflush(stdout);
}

inline void print_table_foot() { std::printf("%s", kTableFoot); }

/// The objects of one experiment, a comma after each but the last of all.
inline void print_json(const Experiment& experiment, bool last) {
  for (std::size_t i = 0; i < experiment.results.size(); ++i) {
    const Result& r = experiment.results[i];
    std::printf(
        "  {\"name\": %s, \"features\": %s, \"causal\": %s, \"seconds\": %s, \"working_bytes\": %s, "
        "\"output_error\": %s, \"row_l1\": %s, \"beats_uniform\": %s, \"nonpositive_rows\": %td, "
        "\"head\": %s}%s\n",
        json_string(r.map).c_str(), r.features ? std::to_string(*r.features).c_str() : "null",
        experiment.causal ? "true" : "false", json_number(r.seconds).c_str(),
        r.working_bytes ? std::to_string(*r.working_bytes).c_str() : "null",
        json_number(r.output_error).c_str(), json_number(r.row_l1).c_str(),
        Verdict(r, experiment.uniform).both() ? "true" : "false", r.status.nonpositive_rows,
        json_string(experiment.head.name).c_str(), last && i + 1 == experiment.results.size() ? "" : ",");
  }
}

}  // namespace examples
