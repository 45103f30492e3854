// Calls over tensors of heads: each head is what it is by itself, wherever it lies, and nothing else is touched.

#include <phiattn/attention/head_memories.hpp>
#include <phiattn/attention/heads.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "call_draws.hpp"
#include "score_draws.hpp"
#include "stored_heads.hpp"
#include "support/head_tensors.hpp"

using namespace fuzz;
using laws::Expected;
using laws::Problem;
using laws::Tensor;
using phiattn::AttentionStatus;
using phiattn::Sequences;

namespace {

template <class S>
struct Call {
  StoredHeads<S, Way::in> q, k, v;
  AttentionOptions options;

  Index batch() const { return q.shape().batch; }
  Index heads() const { return q.shape().heads; }
  Problem<S> head(Index b, Index h) const {
    const Index kv = h / (heads() / k.shape().heads);
    return {q.head(b, h), k.head(b, kv), v.head(b, kv), options};
  }
};

template <class S>
Call<S> draw_call(Bytes& bytes, Index batch, Index least_dimension) {
  const Index kv_heads = bytes.between(0, 3), group = bytes.between(0, 3);
  const Index n_q = bytes.between(0, 9), n_k = bytes.between(0, 9);
  const Index d = bytes.between(least_dimension, 5), dv = bytes.between(0, 4);
  const double size = bytes.one_of({0.7, 3.0});
  return {{bytes, {batch, group * kv_heads, n_q, d}, size},
          {bytes, {batch, kv_heads, n_k, d}, size},
          {bytes, {batch, kv_heads, n_k, dv}, 1},
          draw_options(bytes, n_q, n_k)};
}

template <class S>
using Attend = std::function<AttentionStatus(const Call<S>&, const phiattn::HeadsOutput<S>&)>;
template <class S>
using Due = std::function<Expected(const Problem<S>&, Index h)>;

/// One query that holds no number, which is all that the status reports, once for each row that lies there and sees a key.
template <class S>
void check_status(Bytes& bytes, const std::string& name, const Call<S>& call, const Attend<S>& attend,
                  const Due<S>& due) {
  const auto [batch, heads, n_q, d] = call.q.shape();
  if (batch * heads * n_q * d == 0) return;
  Call<S> other = call;
  other.q.set(bytes.between(0, batch - 1), bytes.between(0, heads - 1), bytes.between(0, n_q - 1), 0,
              std::numeric_limits<S>::quiet_NaN());
  Tensor<S> out({batch, heads, n_q, call.v.shape().dim}, laws::Layout::bhtd);
  const AttentionStatus came = attend(other, out.view());
  AttentionStatus expected;
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      const Expected clean = due(call.head(b, h), h);
      const Matrix<S> q = other.q.head(b, h);
      for (Index t = 0; t < n_q; ++t) {
        if (!q.row(t).hasNaN() || clean.log_normaliser(t) == -oracle::kInfinity) continue;
        expected.add((b * heads + h) * n_q + t);
        require(out.head(b, h).row(t).array().isNaN().all(), name, "a NaN reaches its row");
      }
    }
  }
  require(came.nonpositive_rows == expected.nonpositive_rows &&
              came.first_nonpositive_row == expected.first_nonpositive_row,
          name, "the status counts rows as they lie");
}

template <class S>
void check(Bytes& bytes, const std::string& name, const Call<S>& call, const Attend<S>& attend,
           const Due<S>& due) {
  const HeadsShape shape{call.batch(), call.heads(), call.q.shape().tokens, call.v.shape().dim};
  Tensor<S> dense(shape, laws::Layout::bhtd);
  StoredHeads<S, Way::out> out(bytes, shape, 1);
  attend(call, dense.view());
  attend(call, out.output());
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.heads; ++h) {
      require_close(laws::error(dense.head(b, h), due(call.head(b, h), h)), name, "a head by itself");
      require(laws::same_bits(out.head(b, h), out.narrowed(dense.head(b, h))), name, "wherever it lies");
    }
  }
  require(out.gaps_are_untouched(), name, "nothing is written between the elements");
}

/// One similarity for all heads.
template <class S>
void check_similarity(Bytes& bytes) {
  const auto& all = laws::all_cases<S>();
  const auto& similarity =
      all[static_cast<std::size_t>(bytes.between(0, static_cast<Index>(all.size()) - 1))];
  const Call<S> call = draw_call<S>(bytes, bytes.between(0, 2), similarity.needs_dimension ? 1 : 0);
  const Attend<S> attend = [&](const Call<S>& c, const phiattn::HeadsOutput<S>& out) {
    AttentionOptions options = c.options;
    options.scale.reset();  // the memory's own
    return phiattn::attention(similarity.memory(c.q.shape().dim, c.v.shape().dim, c.options), c.q.input(),
                              c.k.input(), c.v.input(), out, options);
  };
  const Due<S> due = [&](const Problem<S>& problem, Index) { return laws::expected(similarity, problem); };
  check(bytes, similarity.name, call, attend, due);
  if (similarity.positive) check_status(bytes, similarity.name, call, attend, due);
}

/// A modified kernel for all heads, or one for each.
template <class S>
void check_scores(Bytes& bytes) {
  using K = phiattn::ExponentialKernel<S>;
  const Call<S> call = draw_call<S>(bytes, bytes.between(0, 2), 0);
  const bool each = bytes.flag();
  std::vector<phiattn::ModifiedKernel<K>> kernels;
  std::vector<Meaning> meanings;
  for (Index h = 0; h < (each ? call.heads() : 1); ++h) {
    const auto modified = draw_modified(bytes, K(), call.q.shape().tokens, call.k.shape().tokens);
    kernels.push_back(modified.kernel);
    meanings.push_back(modified.meaning);
  }
  check<S>(
      bytes, "scores", call,
      [&](const Call<S>& c, const phiattn::HeadsOutput<S>& out) {
        if (each) return phiattn::attention(kernels, c.q.input(), c.k.input(), c.v.input(), out, c.options);
        return phiattn::attention(kernels[0], c.q.input(), c.k.input(), c.v.input(), out, c.options);
      },
      [&](const Problem<S>& problem, Index h) {
        return laws::expected(oracle::exponential(), meanings[static_cast<std::size_t>(each ? h : 0)],
                              problem);
      });
}

/// Where each of several sequences begins, and the last ends.
std::vector<Index> draw_offsets(Bytes& bytes, Index sequences, Index n) {
  std::vector<Index> offsets{0, n};
  for (Index s = 1; s < sequences; ++s) offsets.push_back(bytes.between(0, n));
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

/// Sequences one behind the other.
template <class S>
void check_sequences(Bytes& bytes) {
  const Call<S> call = draw_call<S>(bytes, 1, 0);
  const Index several = bytes.between(1, 4);
  const auto of_q = draw_offsets(bytes, several, call.q.shape().tokens);
  const auto of_k = draw_offsets(bytes, several, call.k.shape().tokens);
  check<S>(
      bytes, "sequences", call,
      [&](const Call<S>& c, const phiattn::HeadsOutput<S>& out) {
        return phiattn::attention(phiattn::ExponentialKernel<S>(), c.q.input(), c.k.input(), c.v.input(), out,
                                  c.options, Sequences{of_q, of_k});
      },
      [&](const Problem<S>& problem, Index) {
        Expected all =
            oracle::attend(oracle::exponential(), problem.q.template cast<Real>(),
                           oracle::Matrix(0, problem.k.cols()), oracle::Matrix(0, problem.v.cols()));
        all.largest_value = problem.v.size() > 0 ? Real(problem.v.cwiseAbs().maxCoeff()) : Real(0);
        for (std::size_t s = 0; s + 1 < of_q.size(); ++s) {
          const Index n_q = of_q[s + 1] - of_q[s], n_k = of_k[s + 1] - of_k[s];
          const auto one =
              oracle::attend(oracle::exponential(), problem.q.middleRows(of_q[s], n_q).template cast<Real>(),
                             problem.k.middleRows(of_k[s], n_k).template cast<Real>(),
                             problem.v.middleRows(of_k[s], n_k).template cast<Real>(), problem.options);
          all.out.middleRows(of_q[s], n_q) = one.out;
          all.condition.segment(of_q[s], n_q) = one.condition;
        }
        return all;
      });
}

/// A tensor somewhere in a buffer, and the places of its elements; empty if it does not fit.
struct Somewhere {
  HeadsShape shape;
  HeadsStrides strides;
  Index first = 0;
  std::vector<Index> places;

  Somewhere(Bytes& bytes, const HeadsShape& s, Index room) : shape(s) {
    Index lowest = 0, highest = 0;
    for (auto [stride, count] : {std::pair(&strides.batch, s.batch), std::pair(&strides.head, s.heads),
                                 std::pair(&strides.token, s.tokens), std::pair(&strides.dim, s.dim)}) {
      *stride = bytes.one_of<Index>({1, 2, 3, 4, 6, 8, 12, 24, -1, -2, -4, 0});
      (*stride < 0 ? lowest : highest) += *stride * (count - 1);
    }
    if (highest - lowest >= room) return;
    first = bytes.between(-lowest, room - 1 - highest);
    for (Index b = 0; b < s.batch; ++b)
      for (Index h = 0; h < s.heads; ++h)
        for (Index t = 0; t < s.tokens; ++t)
          for (Index c = 0; c < s.dim; ++c)
            places.push_back(first + b * strides.batch + h * strides.head + t * strides.token +
                             c * strides.dim);
    std::sort(places.begin(), places.end());
  }

  template <class T>
  phiattn::Heads<T> in(T* buffer) const {
    return {buffer + first, shape, strides};
  }
};

/// An output that shares a place with an input, or with itself, is refused before anything is written; what is accepted is
/// right.
void check_overlap(Bytes& bytes) {
  constexpr Index kRoom = 80;
  const Index batch = bytes.between(1, 2), kv_heads = bytes.between(1, 2), group = bytes.between(1, 2);
  const Index n = bytes.between(1, 3), d = bytes.between(1, 2);
  const bool memories = bytes.flag();
  const Somewhere of_q(bytes, {batch, group * kv_heads, n, d}, kRoom),
      of_k(bytes, {batch, kv_heads, n, d}, kRoom), of_v(bytes, {batch, kv_heads, n, d}, kRoom),
      of_out(bytes, {batch, group * kv_heads, n, d}, kRoom), of_weights(bytes, {1, 1, batch, n}, kRoom);
  std::vector<const Somewhere*> inputs{&of_q, &of_k, &of_v};
  if (memories) inputs.push_back(&of_weights);
  bool apart = std::adjacent_find(of_out.places.begin(), of_out.places.end()) == of_out.places.end();
  for (const Somewhere* input : inputs) {
    if (input->places.empty() || of_out.places.empty()) return;
    std::vector<Index> shared;
    std::set_intersection(input->places.begin(), input->places.end(), of_out.places.begin(),
                          of_out.places.end(), std::back_inserter(shared));
    apart = apart && shared.empty();
  }

  const Matrix<float> before = bytes.gaussian<float>(1, kRoom);
  Matrix<float> buffer = before;
  const phiattn::ExponentialKernel<float> softmax;
  const auto q = of_q.in(buffer.data()), k = of_k.in(buffer.data()), v = of_v.in(buffer.data()),
             out = of_out.in(buffer.data());
  const auto weights_in = [&](float* numbers) { return of_weights.in(numbers)(0, 0); };
  try {
    if (memories) {
      phiattn::HeadMemories layer(batch, kv_heads, phiattn::KeyValueCache(softmax, d));
      layer.advance(q, k, v, out, {.log_weights = weights_in(buffer.data())});
    } else {
      phiattn::attention(softmax, q, k, v, out);
    }
  } catch (const std::invalid_argument&) {
    require(laws::same_bits(buffer, before), "overlap", "what is refused writes nothing");
    return;
  }
  require(apart, "overlap", "an output that shares memory is refused");
  Matrix<float> inputs_before = before;
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < group * kv_heads; ++h) {
      Problem<float> problem{of_q.in(inputs_before.data())(b, h), of_k.in(inputs_before.data())(b, h / group),
                             of_v.in(inputs_before.data())(b, h / group)};
      if (memories) {
        problem.options.causality = Causality::causal;
        problem.log_weights = weights_in(inputs_before.data()).row(b).transpose();
      }
      const std::vector<Real> log_weights(problem.log_weights.begin(), problem.log_weights.end());
      const Expected due =
          oracle::attend(oracle::exponential(), problem.q.cast<Real>(), problem.k.cast<Real>(),
                         problem.v.cast<Real>(), problem.options, log_weights);
      require_close(laws::error<float>(Matrix<float>(out(b, h)), due), "overlap",
                    "what is accepted is right");
    }
  }
}

template <class S>
void check_any(Bytes& bytes) {
  switch (bytes.between(0, 2)) {
    case 0:
      return check_similarity<S>(bytes);
    case 1:
      return check_scores<S>(bytes);
    default:
      return check_sequences<S>(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  switch (bytes.between(0, 3)) {
    case 0:
      check_overlap(bytes);
      break;
    case 1:
      check_any<double>(bytes);
      break;
    default:
      check_any<float>(bytes);
  }
  return 0;
}
