#pragma once

// Included by masks/score_rules.hpp where that is not compiled elsewhere.

#include <phiattn/core/check.hpp>
#include <phiattn/masks/score_rules.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace phiattn::inline PHIATTN_ABI::detail {

template <class S>
bool ScoreRules<S>::is_elementwise(const Places& places) const {
  const auto scattered = [](const auto& runs) { return runs->scattered; };
  return biases_hide || !(masks.empty() && mask_functions.empty() && bias_functions.empty()) ||
         std::any_of(documents.begin(), documents.end(), scattered) ||
         (places.of_keys && !places.of_queries && (left || right || prefix || !documents.empty()));
}

template <class S>
KeyRange ScoreRules<S>::keys(Index row, Index n_k, const Places& places) const {
  KeyRange seen{0, n_k};
  const auto keep = [&](Index begin, Index end) {
    seen.end = std::clamp<Index>(end, 0, seen.end);
    seen.begin = std::clamp<Index>(begin, seen.begin, seen.end);
  };
  if (places.of_keys && !places.of_queries) return seen;  // in any order
  // Far away is far away: sums with the largest of indices would leave their range.
  constexpr Index kFar = Index{1} << 61;
  const Index position = std::clamp(places.query(row), -kFar, kFar);
  const Index beside = std::clamp(places.query_row(row), -kFar, kFar);
  // Keys that do not exist have the position of the next that does.
  const auto first_at = [&](Index at) {
    return places.of_keys ? std::lower_bound(places.of_keys, places.of_keys + n_k, at) - places.of_keys : at;
  };
  if (prefix) keep(0, (std::max)((std::min)(*prefix, kFar), beside + 1));
  if (right) keep(0, first_at(position + 1 + (std::min)(*right, kFar)));
  if (left) keep(first_at(position - (std::min)(*left, kFar)), n_k);
  for (const auto& runs : documents) {
    if (beside < 0 || beside >= runs->ids.size()) return {0, 0};
    keep(runs->begin(beside), runs->end(beside));
  }
  return seen;
}

template <class S>
void ScoreRules<S>::check(Index n_q, Index n_k) const {
  for (const auto& bias : biases) {
    check_equal("rows of Bias", bias->rows(), "rows of q", n_q);
    check_equal("columns of Bias", bias->cols(), "rows of k", n_k);
  }
  for (const auto& mask : masks) {
    check_equal("rows of BooleanMask", mask->rows(), "rows of q", n_q);
    check_equal("columns of BooleanMask", mask->cols(), "rows of k", n_k);
  }
  for (const auto& runs : documents) check_equal("size of Documents", runs->ids.size(), "rows of k", n_k);
  for (const auto& decay : decays) {
    check_equal("size of log_decay of Forgetting", decay->size(), "rows of k", n_k);
  }
}

template <class S>
void ScoreRules<S>::check(KeyRange queries, KeyRange keys) const {
  const auto reach = [](const char* what, Index size, const char* of_what, const KeyRange& positions) {
    if (positions.begin >= positions.end) return;
    check_at_least((std::string("position of ") + of_what + ", for " + what).c_str(), positions.begin, 0);
    check_at_least(what, size, positions.end);
  };
  for (const auto& bias : biases) {
    reach("rows of Bias", bias->rows(), "a query", queries);
    reach("columns of Bias", bias->cols(), "a key", keys);
  }
  for (const auto& mask : masks) {
    reach("rows of BooleanMask", mask->rows(), "a query", queries);
    reach("columns of BooleanMask", mask->cols(), "a key", keys);
  }
  for (const auto& runs : documents) reach("size of Documents", runs->ids.size(), "a key", keys);
  for (const auto& decay : decays) reach("size of log_decay of Forgetting", decay->size(), "a key", keys);
}

template <class S>
std::shared_ptr<const Rules<S>> ScoreRules<S>::of_existing(const S* log_weights, Index n_k) const {
  if (decays.empty()) return nullptr;
  auto rules = std::make_shared<ScoreRules>(*this);
  for (auto& decay : rules->decays) {
    Vector<double> sums = *decay;
    double gone = 0;
    for (Index j = 0; j < n_k; ++j) {
      const bool missing = log_weights[j] == -std::numeric_limits<S>::infinity();
      if (missing) gone += (*decay)(j) - (j > 0 ? (*decay)(j - 1) : 0);
      sums(j) -= gone;
    }
    decay = std::make_shared<const Vector<double>>(std::move(sums));
  }
  return rules;
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
  const bool counted = places.of_queries || !places.of_keys;
  for (const auto& bias : biases) {
    if (counted) {
      x += bias->row(row).segment(key, n).array();
    } else {
      for (Index j = 0; j < n; ++j) x(j) += (*bias)(row, places.key_row(key + j));
    }
  }
  for (const auto& decay : decays) {
    // A query beyond the last key stands beside it; one before the first has every gate ahead.
    const Index at = (std::min)(places.query_row(row), decay->size() - 1);
    const double here = at < 0 ? 0 : (*decay)(at);
    if (counted) {
      const Index behind = std::clamp<Index>(at + 1 - key, 0, n), ahead = n - behind;
      x.head(behind) += (here - decay->segment(key, behind).transpose().array()).template cast<S>();
      x.tail(ahead) += (decay->segment(key + behind, ahead).transpose().array() - here).template cast<S>();
    } else {
      for (Index j = 0; j < n; ++j) {
        const Index row_of_key = places.key_row(key + j);
        const double gates = (*decay)(row_of_key)-here;
        x(j) += static_cast<S>(row_of_key <= at ? -gates : gates);
      }
    }
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
  for (const auto& bias : biases) {
    if (biases_hide) where([&](Index j) { return (*bias)(row, places.key_row(key + j)) == kNone; });
  }
  for (const auto& bias : bias_functions) {
    where([&](Index j) { return (*bias)(position, places.key(key + j)) == kNone; });
  }
  for (const auto& mask : masks) where([&](Index j) { return (*mask)(row, places.key_row(key + j)) == 0; });
  for (const auto& runs : documents) {
    const Vector<Index>& ids = runs->ids;
    const Index at = places.query_row(row);
    const bool outside = at < 0 || at >= ids.size();
    where([&](Index j) { return outside || ids(at) != ids(places.key_row(key + j)); });
  }
  for (const auto& sees : mask_functions) {
    where([&](Index j) { return !(*sees)(position, places.key(key + j)); });
  }
  if (!places.of_keys || places.of_queries) return;  // a run of keys says it
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
