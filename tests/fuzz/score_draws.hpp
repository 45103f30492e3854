// Kernels with any modifiers, and what these mean.
#pragma once

#include <phiattn/kernels/with.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "bytes.hpp"
#include "support/scores.hpp"

namespace fuzz {

using laws::Meaning;
using laws::Pair;
using laws::Real;

template <class K>
struct Modified {
  phiattn::ModifiedKernel<K> kernel;
  Meaning meaning;

  explicit Modified(const K& plain) : kernel(phiattn::with(plain)) {}

  template <class M>
  void add(const M& modifier) {
    kernel = phiattn::with(kernel, modifier);
  }
};

/// What any kernel takes.
template <class K>
void add_mask(Bytes& bytes, Index n_q, Index n_k, Modified<K>& to) {
  auto& masks = to.meaning.masks;
  switch (bytes.between(0, 4)) {
    case 0: {
      const Index left = bytes.between(0, 30), right = bytes.one_of<Index>({0, 3, 1000});
      to.add(phiattn::SlidingWindow{left, right});
      masks.push_back([=](const Pair& p) {
        return p.key_position >= p.query_position - left && p.key_position <= p.query_position + right;
      });
      break;
    }
    case 1:
      if (to.meaning.prefix) break;
      to.meaning.prefix = bytes.between(0, 25);
      to.add(phiattn::PrefixCausal{*to.meaning.prefix});
      break;
    case 2: {
      const double least = bytes.one_of({0.0, -1.0, 1.0, 9.0});
      const Matrix<bool> seen = (bytes.gaussian<double>(n_q, n_k).array() > least).matrix();
      to.add(phiattn::BooleanMask(seen));
      masks.push_back([=](const Pair& p) { return seen(p.query, p.key_row); });
      break;
    }
    case 3: {
      const Index run = bytes.between(1, 9), several = bytes.between(1, 4);
      std::vector<Index> ids;
      for (Index j = 0; j < n_k; ++j) ids.push_back(5 - j / run % several);
      to.add(phiattn::Documents(ids));
      masks.push_back([=](const Pair& p) {
        const auto id = [&](Index row) { return ids[static_cast<std::size_t>(row)]; };
        return p.query_row >= 0 && p.query_row < n_k && id(p.query_row) == id(p.key_row);
      });
      break;
    }
    default: {
      const Index a = bytes.between(0, 5), b = bytes.between(0, 5), modulus = bytes.between(1, 5);
      const auto sees = [=](Index i, Index j) { return (a * i + b * j) % modulus != 1; };
      to.add(sees);
      masks.push_back([=](const Pair& p) { return sees(p.query_position, p.key_position); });
    }
  }
}

/// What changes the logarithm of a similarity.
template <class K>
void add_change(Bytes& bytes, Index n_q, Index n_k, Modified<K>& to) {
  using S = typename K::Scalar;
  auto& biases = to.meaning.biases;
  switch (bytes.between(0, 5)) {
    case 0: {
      const double slope = bytes.one_of({0.25, 2.0, -0.125, 0.0});
      to.add(phiattn::Alibi{slope});
      biases.push_back([=](const Pair& p) {
        return -Real(slope) * static_cast<Real>(std::abs(p.query_position - p.key_position));
      });
      break;
    }
    case 1:
      if (to.meaning.cap) break;
      to.meaning.cap = bytes.one_of<Real>({0.5, 10, 1000});
      to.add(phiattn::SoftCap{static_cast<double>(*to.meaning.cap)});
      break;
    case 2: {
      Matrix<S> bias = bytes.gaussian<S>(n_q, n_k, 2);
      for (Index e = bytes.between(0, 6), step = bytes.between(1, 5); e < bias.size(); e += step) {
        bias(e) = -std::numeric_limits<S>::infinity();
      }
      to.add(phiattn::Bias(bias));
      biases.push_back([=](const Pair& p) { return static_cast<Real>(bias(p.query, p.key_row)); });
      break;
    }
    case 3: {
      const Matrix<double> decay = bytes.gaussian<double>(n_k, 1, 0.5);
      to.add(phiattn::Forgetting(decay));
      to.meaning.log_decay.resize(static_cast<std::size_t>(n_k));
      for (Index j = 0; j < n_k; ++j) to.meaning.log_decay[static_cast<std::size_t>(j)] += decay(j);
      break;
    }
    case 4: {
      const Index a = bytes.between(0, 5), b = bytes.between(0, 5);
      const auto bias = [=](Index i, Index j) {
        const Index number = (a * i + b * j) % 7;
        return number == 3 ? -INFINITY : 0.25F * static_cast<float>(number);
      };
      to.add(bias);
      biases.push_back(
          [=](const Pair& p) { return static_cast<Real>(bias(p.query_position, p.key_position)); });
      break;
    }
    default: {
      const double logit = bytes.one_of<double>({0.75, -300, 300, -INFINITY});
      to.add(phiattn::Sink{logit});
      if (logit == -INFINITY) break;
      to.meaning.sink = oracle::log_sum_exp({to.meaning.sink.value_or(-oracle::kInfinity), Real(logit)});
    }
  }
}

/// Of up to three modifiers, for a call of n_q queries and n_k keys.
template <class K>
Modified<K> draw_modified(Bytes& bytes, const K& kernel, Index n_q, Index n_k) {
  Modified<K> all(kernel);
  for (Index left = bytes.between(0, 3); left > 0; --left) {
    if constexpr (phiattn::LogKernel<K>) {
      if (bytes.flag()) {
        add_change(bytes, n_q, n_k, all);
        continue;
      }
    }
    add_mask(bytes, n_q, n_k, all);
  }
  return all;
}

}  // namespace fuzz
