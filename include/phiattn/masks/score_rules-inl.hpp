#pragma once

// Included by masks/score_rules.hpp where that is not compiled elsewhere.

#include <phiattn/core/check.hpp>
#include <phiattn/masks/score_rules.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace phiattn::inline PHIATTN_ABI::detail {

template <class S>
KeyRange ScoreRules<S>::keys(Index position, Index n_k) const {
  // Far away is far away: sums with the largest of indices would leave their range.
  const auto away = [](Index distance) { return (std::min)(distance, Index{1} << 62); };
  position = std::clamp(position, -(Index{1} << 61), Index{1} << 61);
  Index begin = 0, end = n_k;
  if (prefix) end = std::clamp<Index>((std::max)(away(*prefix), position + 1), 0, n_k);
  if (right) end = std::clamp<Index>(position + 1 + away(*right), 0, end);
  if (left) begin = std::clamp<Index>(position - away(*left), 0, end);
  for (const auto& runs : documents) {
    if (position < 0 || position >= runs->ids.size()) return {0, 0};
    begin = (std::max)(begin, runs->begin(position));
    end = (std::min)(end, runs->end(position));
  }
  return {(std::min)(begin, end), end};
}

template <class S>
void ScoreRules<S>::check(Index n_q, Index n_k, bool exactly) const {
  const auto fits = [exactly](const char* what, Index came, const char* reference, Index due) {
    if (exactly) {
      check_equal(what, came, reference, due);
    } else {
      check_at_least(what, came, due);
    }
  };
  for (const auto& bias : biases) {
    fits("rows of Bias", bias->rows(), "rows of q", n_q);
    fits("columns of Bias", bias->cols(), "rows of k", n_k);
  }
  for (const auto& mask : masks) {
    fits("rows of BooleanMask", mask->rows(), "rows of q", n_q);
    fits("columns of BooleanMask", mask->cols(), "rows of k", n_k);
  }
  for (const auto& runs : documents) fits("size of Documents", runs->ids.size(), "rows of k", n_k);
  for (const auto& decay : decays) fits("size of log_decay of Forgetting", decay->size(), "rows of k", n_k);
}

template <class S>
void ScoreRules<S>::apply(S* scores, Index n, Index row, Index key, const Places& places) const {
  Eigen::Map<Eigen::Array<S, 1, Eigen::Dynamic>> x(scores, n);
  if (cap) x = (x / *cap).tanh() * *cap;
  const Index position = places.query(row);
  if (slope != 0) {
    if (places.of_keys) {
      for (Index j = 0; j < n; ++j) x(j) -= slope * static_cast<S>(std::abs(position - places.key(key + j)));
    } else {
      const auto first = static_cast<S>(key - position), last = static_cast<S>(key + n - 1 - position);
      x -= slope * Eigen::Array<S, 1, Eigen::Dynamic>::LinSpaced(n, first, last).abs();
    }
  }
  for (const auto& bias : biases) x += bias->row(row).segment(key, n).array();
  for (const auto& decay : decays) {
    // A query beyond the last key stands beside it.
    const Index at = std::clamp<Index>(row + places.offset, 0, decay->size() - 1);
    x -= (decay->segment(key, n).transpose().array() - (*decay)(at)).abs().template cast<S>();
  }
  for (const auto& bias : bias_functions) {
    for (Index j = 0; j < n; ++j) x(j) += (*bias)(position, places.key(key + j));
  }
}

template <class S>
void ScoreRules<S>::hide(std::uint8_t* hidden, Index n, Index row, Index key, const Places& places) const {
  constexpr S kNone = -std::numeric_limits<S>::infinity();
  const Index position = places.query(row);
  const auto where = [&](const auto& hides) {
    for (Index j = 0; j < n; ++j) hidden[j] |= std::uint8_t{hides(j)};
  };
  for (const auto& bias : biases) where([&](Index j) { return (*bias)(row, key + j) == kNone; });
  for (const auto& bias : bias_functions) {
    where([&](Index j) { return (*bias)(position, places.key(key + j)) == kNone; });
  }
  for (const auto& mask : masks) where([&](Index j) { return (*mask)(row, key + j) == 0; });
  for (const auto& runs : documents) {
    const Vector<Index>& ids = runs->ids;
    const Index at = row + places.offset;
    const bool outside = at < 0 || at >= ids.size();
    where([&](Index j) { return outside || ids(at) != ids(key + j); });
  }
  for (const auto& sees : mask_functions) {
    where([&](Index j) { return !(*sees)(position, places.key(key + j)); });
  }
  if (!places.irregular()) return;
  where([&](Index j) {
    const Index away = position - places.key(key + j);
    const bool ahead = prefix && away < 0 && places.key(key + j) >= *prefix;
    return ahead || (left && away > *left) || (right && -away > *right);
  });
}

template <class S>
bool ScoreRules<S>::operator==(const ScoreRules& other) const {
  const auto same = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      if constexpr (requires { x->rows(); }) {
        if (x->rows() != y->rows() || x->cols() != y->cols()) return false;
      }
      return x == y || *x == *y;
    });
  };
  // What functions do nobody can tell: only a copy is the same.
  return cap == other.cap && slope == other.slope && left == other.left && right == other.right &&
         prefix == other.prefix && sink == other.sink && same(biases, other.biases) &&
         same(decays, other.decays) && same(masks, other.masks) && same(documents, other.documents) &&
         bias_functions == other.bias_functions && mask_functions == other.mask_functions;
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
