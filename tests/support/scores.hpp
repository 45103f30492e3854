// What modifiers of scores mean, written out once more in naive loops.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "support/problem.hpp"

namespace laws {

/// What a query and a key are to each other: rows as given, positions counted over the keys that exist, the query's number.
struct Pair {
  Index query, query_row, query_position, key_row, key_position;
};

/// What modifiers mean, in numbers.
struct Meaning {
  std::optional<Real> cap = {};
  std::vector<std::function<Real(const Pair&)>> biases = {};
  std::vector<std::function<bool(const Pair&)>> masks = {};
  std::optional<Index> prefix = {};
  std::vector<double> log_decay = {};
  std::optional<Real> sink = {};
};

/// The row and the position at which query i stands.
inline std::pair<Index, Index> standing(Index row, Index n_k, const std::vector<Real>& log_weights) {
  if (log_weights.empty() || row < 0) return {row, row};
  Index count = 0;
  for (Index j = 0; j <= std::min(row, n_k - 1); ++j) {
    if (log_weights[static_cast<std::size_t>(j)] != -oracle::kInfinity) ++count;
  }
  return {row, std::max<Index>(row - n_k + 1, 0) + std::max<Index>(count - 1, 0)};
}

template <class S>
Expected expected(const oracle::Similarity& similarity, const Meaning& meaning, const Problem<S>& problem) {
  const oracle::Matrix q = problem.q.template cast<Real>(), k = problem.k.template cast<Real>(),
                       v = problem.v.template cast<Real>();
  const AttentionOptions& options = problem.options;
  const std::vector<Real> log_weights(problem.log_weights.begin(), problem.log_weights.end());
  const Index n_q = q.rows(), n_k = k.rows();
  const bool causal = options.causality == Causality::causal;
  const Index offset =
      options.query_offset.value_or(causal && options.alignment == phiattn::Alignment::last ? n_k - n_q : 0);
  const Real root =
      std::sqrt(options.scale ? static_cast<Real>(*options.scale) : similarity.default_scale(q.cols()));
  Expected due{{},
               oracle::Matrix::Zero(n_q, v.cols()),
               oracle::Matrix::Zero(n_q, n_k),
               oracle::Vector::Constant(n_q, -oracle::kInfinity),
               oracle::Vector::Ones(n_q),
               oracle::Vector::Ones(n_q),
               0};
  for (Index j = 0; j < n_k; ++j) {
    const bool exists = log_weights.empty() || log_weights[static_cast<std::size_t>(j)] != -oracle::kInfinity;
    if (exists && v.cols() > 0)
      due.largest_value = std::max(due.largest_value, v.row(j).cwiseAbs().maxCoeff());
  }
  for (Index i = 0; i < n_q; ++i) {
    due.rows.push_back(i);
    const auto [row, position] = standing(i + offset, n_k, log_weights);
    std::vector<Index> keys;
    std::vector<Real> logs, signs, bounds;
    Real exponent = 0;
    Index key_position = -1;
    for (Index j = 0; j < n_k; ++j) {
      const Real weight = log_weights.empty() ? Real(0) : log_weights[static_cast<std::size_t>(j)];
      if (weight == -oracle::kInfinity) continue;
      ++key_position;
      const Pair pair{i, row, position, j, key_position};
      bool seen = meaning.prefix ? j < *meaning.prefix || j <= row : !causal || j <= row;
      for (const auto& sees : meaning.masks) seen = seen && sees(pair);
      if (!seen) continue;
      Real bias = 0, size = std::abs(weight);
      for (const auto& of : meaning.biases) bias += of(pair), size += std::abs(of(pair));
      if (!meaning.log_decay.empty()) {
        Real forgotten = 0;
        const Index at = std::clamp<Index>(row, -1, n_k - 1);
        for (Index l = std::min(at, j) + 1; l <= std::max(at, j); ++l) {
          if (log_weights.empty() || log_weights[static_cast<std::size_t>(l)] != -oracle::kInfinity) {
            forgotten += meaning.log_decay[static_cast<std::size_t>(l)];
          }
        }
        bias += forgotten, size += std::abs(forgotten);
      }
      if (bias == -oracle::kInfinity) continue;
      oracle::Term term = similarity.pair(root * q.row(i), root * k.row(j));
      const Real change =
          meaning.cap ? *meaning.cap * std::tanh(term.log / *meaning.cap) - term.log : Real(0);
      const Real added = change + bias + weight;
      keys.push_back(j);
      logs.push_back(term.log + added);
      signs.push_back(term.sign);
      bounds.push_back(std::max(term.log_bound, term.log) * (meaning.cap ? 0 : 1) +
                       (meaning.cap ? term.log : Real(0)) + added);
      exponent = std::max(exponent, term.exponent + size);
    }
    if (keys.empty()) continue;
    std::vector<Real> all = bounds;
    all.insert(all.end(), logs.begin(), logs.end());
    if (meaning.sink) all.push_back(*meaning.sink);
    const Real shift = *std::max_element(all.begin(), all.end());
    Real sum = meaning.sink ? std::exp(*meaning.sink - shift) : Real(0), bound = sum;
    for (std::size_t p = 0; p < keys.size(); ++p) {
      sum += signs[p] * std::exp(logs[p] - shift);
      bound += std::exp(bounds[p] - shift);
    }
    for (std::size_t p = 0; p < keys.size(); ++p) {
      due.weights(i, keys[p]) = signs[p] * std::exp(logs[p] - shift) / sum;
      for (Index c = 0; c < v.cols(); ++c) due.out(i, c) += due.weights(i, keys[p]) * v(keys[p], c);
    }
    due.log_normaliser(i) = shift + std::log(std::abs(sum));
    due.sign(i) = sum < 0 ? Real(-1) : Real(1);
    exponent += std::abs(due.log_normaliser(i));
    const Real operations = 4 + std::sqrt(static_cast<Real>(q.cols() + n_k));
    due.condition(i) = operations * (1 + exponent) * bound / std::abs(sum);
  }
  return due;
}

}  // namespace laws
