// Tensors of heads in any layout, and the problem that each head of them is.
#pragma once

#include <phiattn/core/heads.hpp>

#include <vector>

#include "support/problem.hpp"

namespace laws {

using phiattn::Heads;
using phiattn::HeadsShape;
using phiattn::HeadsStrides;
using phiattn::Layout;

/// A tensor that owns its numbers; those between its elements, where strides leave any, are NaN.
template <class S>
class Tensor {
 public:
  Tensor(const HeadsShape& shape, Layout layout, std::uint64_t seed = 0, double size = 1)
      : Tensor(shape, strides(shape, layout, 1), seed, size) {}

  /// Every second number of rows that have room for two more.
  static Tensor spread(const HeadsShape& shape, std::uint64_t seed = 0, double size = 1) {
    return Tensor(shape, strides(shape, Layout::bthd, 2), seed, size);
  }

  Heads<S> view() { return {numbers_.data(), shape_, strides_}; }
  Heads<const S> view() const { return {numbers_.data(), shape_, strides_}; }
  Matrix<S> head(Index b, Index h) const { return view()(b, h); }

 private:
  Tensor(const HeadsShape& shape, const HeadsStrides& strides, std::uint64_t seed, double size)
      : shape_(shape),
        strides_(strides),
        numbers_(static_cast<std::size_t>(shape.batch * strides.batch + 1),
                 std::numeric_limits<S>::quiet_NaN()) {
    for (Index b = 0; b < shape.batch; ++b) {
      for (Index h = 0; h < shape.heads; ++h) {
        view()(b, h) = gaussian<S>(shape.tokens, shape.dim,
                                   seed + 100 * static_cast<std::uint64_t>(b * shape.heads + h), size);
      }
    }
  }

  static HeadsStrides strides(const HeadsShape& s, Layout layout, Index step) {
    const Index dim = step * s.dim + (step - 1);
    return layout == Layout::bhtd ? HeadsStrides{s.heads * s.tokens * dim, s.tokens * dim, dim, step}
                                  : HeadsStrides{s.heads * s.tokens * dim, dim, s.heads * dim, step};
  }

  HeadsShape shape_;
  HeadsStrides strides_;
  std::vector<S> numbers_;
};

/// q (batch, heads, n_q, d) over k (batch, kv_heads, n_k, d) and v (batch, kv_heads, n_k, dv).
template <class S>
struct HeadsProblem {
  Tensor<S> q, k, v, out;
  Index heads, kv_heads;
  AttentionOptions options = {};

  HeadsProblem(Index batch, Index heads_of_q, Index heads_of_k, const Shape& s, Layout layout,
               const AttentionOptions& call = {})
      : q({batch, heads_of_q, s.n_q, s.d}, layout, kSeed, 0.7),
        k({batch, heads_of_k, s.n_k, s.d}, layout, kSeed + 1, 0.7),
        v({batch, heads_of_k, s.n_k, s.dv}, layout, kSeed + 2),
        out({batch, heads_of_q, s.n_q, s.dv}, layout, kSeed + 3),
        heads(heads_of_q),
        kv_heads(heads_of_k),
        options(call) {}

  Index batch() const { return q.view().shape().batch; }
  Problem<S> head(Index b, Index h) const {
    const Index kv = h / (heads / kv_heads);
    return {q.head(b, h), k.head(b, kv), v.head(b, kv), options};
  }
};

}  // namespace laws
