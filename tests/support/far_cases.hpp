// Far memories, with the definitions they answer to.
#pragma once

#include "support/far_oracle.hpp"
#include "support/problem.hpp"

namespace laws {

template <class S>
struct FarCase {
  std::string name;
  oracle::Frame frame;
  oracle::FarModel model;
  /// The memory alone, and behind a window.
  std::function<Memory<S>(Index dv, const AttentionOptions& options)> memory;
  std::function<Memory<S>(Index window, Index dv, const AttentionOptions& options)> windowed;
  /// phiattn::attention with the one behind a window.
  std::function<Matrix<S>(Index window, const Problem<S>& problem)> attention;
};

inline constexpr Index kFarDimension = 5;

/// Of keys of kFarDimension: laws/cases_far_memories.cpp.
template <class S>
std::vector<FarCase<S>> far_closures();
template <class S>
std::vector<FarCase<S>> far_mixtures();
template <class S>
std::vector<FarCase<S>> far_clusters();

template <class S>
const std::vector<FarCase<S>>& far_cases() {
  static const std::vector<FarCase<S>> cases = [] {
    std::vector<FarCase<S>> all;
    for (const auto& family : {far_closures<S>, far_mixtures<S>, far_clusters<S>}) {
      for (auto& one : family()) all.push_back(std::move(one));
    }
    return all;
  }();
  return cases;
}

/// Which keys a query sees exactly, and which sets of others a far memory each.
struct Sight {
  std::vector<Index> near;
  std::vector<std::vector<Index>> far;
};

/// The definition for every query: rows, out, log_normaliser and condition.
template <class S>
Expected expected_far(const FarCase<S>& far, const Problem<S>& problem,
                      const std::function<Sight(Index i)>& sight) {
  const oracle::Matrix q = problem.q.template cast<Real>();
  const oracle::Matrix k = problem.k.template cast<Real>();
  const oracle::Matrix v = problem.v.template cast<Real>();
  const Real scale = problem.options.scale ? static_cast<Real>(*problem.options.scale)
                                           : 1 / std::sqrt(static_cast<Real>(q.cols()));
  const Real root = std::sqrt(scale);
  const auto& frame = far.frame;

  oracle::FarKeys keys{oracle::Matrix(k.rows(), k.cols()), v, {}, {}};
  oracle::FarKeys plain{root * k, v, {}, {}};
  for (Index j = 0; j < k.rows(); ++j) {
    const oracle::RealRow moved = k.row(j) - frame.key_shift;
    const Real weight = problem.log_weights.size() == 0 ? Real(0) : static_cast<Real>(problem.log_weights(j));
    keys.y.row(j) = root * moved.cwiseQuotient(frame.psi);
    keys.log_weights.push_back(weight + scale * frame.query_shift.dot(moved));
    keys.counts.push_back(weight);
    plain.log_weights.push_back(weight);
    plain.counts.push_back(weight);
  }

  Expected due{{},
               oracle::Matrix::Zero(q.rows(), v.cols()),
               {},
               oracle::Vector::Constant(q.rows(), -oracle::kInfinity),
               oracle::Vector::Ones(q.rows()),
               oracle::Vector::Ones(q.rows()),
               v.size() > 0 ? v.cwiseAbs().maxCoeff() : Real(0)};
  for (Index i = 0; i < q.rows(); ++i) {
    due.rows.push_back(i);
    const Sight seen = sight(i);
    const oracle::RealRow x = root * (q.row(i) - frame.query_shift).cwiseProduct(frame.psi);
    const oracle::RealRow own = root * q.row(i);
    std::vector<oracle::FarResult> parts;
    for (const Index j : seen.near) {
      const Real weight = plain.log_weights[static_cast<std::size_t>(j)];
      const Real score = own.dot(plain.y.row(j));
      parts.push_back(
          {weight + score, plain.v.row(j),
           (4 + std::sqrt(static_cast<Real>(k.size()))) *
               (1 + own.norm() * plain.y.row(j).norm() + (std::isinf(weight) ? 0 : std::abs(weight)))});
    }
    for (const auto& rows : seen.far) {
      auto part = far.model(x, keys.only(rows), root);
      part.log_normaliser += scale * frame.key_shift.dot(q.row(i));
      part.condition *= 1 + std::abs(scale * frame.key_shift.dot(q.row(i)));
      parts.push_back(part);
    }
    const auto whole = oracle::join(parts, v.cols());
    due.out.row(i) = whole.out;
    due.log_normaliser(i) = whole.log_normaliser;
    due.condition(i) =
        whole.condition * (1 + (std::isinf(whole.log_normaliser) ? 0 : std::abs(whole.log_normaliser)));
  }
  return due;
}

/// Keys [begin, end) that exist among n.
inline std::vector<Index> keys_in(Index begin, Index end, Index n) {
  std::vector<Index> keys;
  for (Index j = std::max<Index>(begin, 0); j < std::min(end, n); ++j) keys.push_back(j);
  return keys;
}

/// All n keys in one far memory.
inline std::function<Sight(Index)> all_far(Index n) {
  return [n](Index) { return Sight{{}, {keys_in(0, n, n)}}; };
}

/// What attention with a window of w sees, causal or not.
template <class S>
std::function<Sight(Index)> windowed_sight(Index w, const Problem<S>& problem) {
  const Index n_q = problem.q.rows();
  const Index n = problem.k.rows();
  const bool causal = problem.options.causality == Causality::causal;
  const Index offset = problem.options.query_offset.value_or(causal ? n - n_q : 0);
  return [=](Index i) {
    const Index at = i + offset;
    if (!causal) {
      return Sight{keys_in(at - w / 2, at + w / 2 + 1, n),
                   {keys_in(0, at - w / 2, n), keys_in(at + w / 2 + 1, n, n)}};
    }
    const Index end = std::min(at + 1, n);
    return Sight{keys_in(end - w, end, n), {keys_in(0, end - w, n)}};
  };
}

}  // namespace laws
