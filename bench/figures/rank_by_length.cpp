// Figure 4: rank of the weights against the number of tokens, and the spectra behind it.
#include <phiattn/analysis/rank.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/any.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>

#include "support/degrees.hpp"
#include "support/lab.hpp"

namespace figures {

namespace {

namespace pa = phiattn;
constexpr Index kD = 16;

struct Ranked {
  std::string name;
  std::function<Matrix<double>(const Matrix<double>& q, const Matrix<double>& k, bool causal)> weights;
};

template <class Map>
Ranked ranked(std::string name, const Map& map) {
  return {std::move(name), [any = pa::any_feature_map(map)](const auto& q, const auto& k, bool causal) {
            return pa::attention_weights(any, q, k,
                                         {.causality = causal ? pa::Causality::causal : pa::Causality::none});
          }};
}

std::vector<Ranked> ranked_maps() {
  const auto performer = [](Index m) {
    return pa::PositiveRandomFeatures<double>(pa::sample_projection<double>(m, kD));
  };
  return {{"softmax", softmax_weights},
          ranked("Performer m = 16", performer(16)),
          ranked("Performer m = 64", performer(64)),
          ranked("Performer m = 256", performer(256)),
          ranked("elu + 1", pa::EluFeatures<double>(kD)),
          ranked("Taylor n = 2", pa::TaylorFeatures<double>(kD, 2))};
}

}  // namespace

void rank_by_length(const Options& options, Claims& claims) {
  std::vector<Index> lengths{16, 32, 64, 128, 256, 512};
  if (options.full) lengths.insert(lengths.end(), {1024, 2048});
  const std::vector<Ranked> maps = ranked_maps();
  struct Row {
    bool causal;
    std::size_t map;
    Index n;
    std::optional<pa::Spectrum> spectrum;
  };
  std::vector<Row> rows;
  for (const bool causal : {false, true})
    for (std::size_t map = 0; map < maps.size(); ++map)
      for (const Index n : lengths) rows.push_back({causal, map, n, std::nullopt});
  parallel_for(rows.size(), [&](std::size_t i) {
    Row& row = rows[rows.size() - 1 - i];  // the longest first
    const Matrix<double> q = gaussian(row.n, kD, 1, 0, 11), k = gaussian(row.n, kD, 1, 0, 12);
    row.spectrum.emplace(maps[row.map].weights(q, k, row.causal));
  });

  Csv csv(options, "rank_by_length.csv", "causal,map,n,numerical,stable,entropy,energy_99");
  Csv spectra(options, "spectra.csv", "causal,map,index,singular_value");
  std::string full, causal, energy;
  for (const Row& row : rows) {
    const std::string& name = maps[row.map].name;
    const pa::Spectrum& spectrum = *row.spectrum;
    csv.row(row.causal, name, row.n, spectrum.numerical_rank(), spectrum.stable_rank(),
            spectrum.entropy_rank(), spectrum.energy_rank());
    if (row.n != 512) continue;
    (row.causal ? causal : full) += text("%s %td; ", name.c_str(), spectrum.numerical_rank());
    if (!row.causal) energy += text("%s %td; ", name.c_str(), spectrum.energy_rank());
    const Vector<double>& values = spectrum.values();
    for (Index i = 0; i < values.size(); ++i)
      if (values(i) > 1e-17 * values(0)) spectra.row(row.causal, name, i + 1, values(i) / values(0));
  }
  const Matrix<double> x = gaussian(512, kD, 1, 0, 11);
  const Index shared = pa::Spectrum(softmax_weights(x, x, true)).numerical_rank();
  const auto trimmed = [](const std::string& list) { return list.substr(0, list.size() - 2); };
  claims.add({"infinite", "linear attention has rank ≤ m, softmax no such bound (bidirectional)", "holds",
              "n = 512, d = 16: " + trimmed(full), "4"});
  claims.add({"infinite", "the low rank is what linear attention lacks",
              "holds for m < n; most of the energy is elsewhere",
              "99 % of the energy in " + trimmed(energy) + " singular values", "4"});
  claims.add({"infinite", "the same of causal attention", "does not hold: triangular weights have full rank",
              text("n = 512: in double %s, k = q: softmax %td; what is missing is below rounding, not 0",
                   trimmed(causal).c_str(), shared),
              "4"});
}

}  // namespace figures
