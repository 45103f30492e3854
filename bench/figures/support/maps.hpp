#pragma once

// The random maps of the figures, and what one draw of each does to the weights.

#include <phiattn/analysis/regime.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab.hpp"

namespace figures {

/// What a draw of m features does to the weights of softmax attention on q and k, which calibrated maps may look at.
using Draw = std::function<phiattn::Expectation(const phiattn::Regime&, const Matrix<double>& q,
                                                const Matrix<double>& k, Index m, std::uint64_t seed)>;

struct RandomMap {
  std::string name;
  Draw draw;
};

/// iid, orthogonal, orthogonal with quantile or fixed radii, simplex, Hadamard, antithetic, antithetic with fixed radii,
/// FAVOR++, trigonometric. All but iid have orthogonal blocks, or what their name says in place of these.
const std::vector<RandomMap>& random_maps();

/// Independent Fourier pairs of the exponential kernel, not of the difference of q and k (Su 2020).
const RandomMap& fourier_pairs();

}  // namespace figures
