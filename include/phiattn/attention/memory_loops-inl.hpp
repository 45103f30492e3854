#pragma once

// Included by attention/memory_loops.hpp where that is not compiled elsewhere.

#include <phiattn/attention/memory_loops.hpp>

#include <algorithm>
#include <limits>

namespace phiattn::inline PHIATTN_ABI::detail {

/// What the loops of a block fetch while they run.
class FetchAhead {
 public:
  explicit FetchAhead(const Prefetch::Spans& spans) { Workspace::of_this_thread().ahead = Prefetch(spans); }
  ~FetchAhead() { Workspace::of_this_thread().ahead = Prefetch(); }
  FetchAhead(const FetchAhead&) = delete;
  FetchAhead& operator=(const FetchAhead&) = delete;
};

/// What a model takes moves the next position on, whether it throws or not.
template <class S>
class Progress {
 public:
  Progress(const ModelRef<S>& model, Index position, Index& next)
      : model_(model), position_(position - model.size(model.memory)), next_(next) {}
  ~Progress() { next_ = position_ + model_.size(model_.memory); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  const ModelRef<S>& model_;
  Index position_;
  Index& next_;
};

template <class S>
Tokens<S> MemoryLoops<S>::load(Workspace::Frame& frame, const Input<S>& keys, const Input<S>& values,
                               const Input<S>& log_weights, Index first, S root_scale, Rows<S> k) {
  const Index n = k.rows;
  keys.load(first, root_scale, k);
  const Rows<S> v = frame.rows<S>(n, values.cols());
  if (!log_weights) return {k, values.rows_at(first, v), nullptr, 0};
  const Rows<S> weights = frame.rows<S>(n, 1);
  log_weights.as_column().load(first, S(1), weights);
  values.load(first, S(1), v);
  // A key of weight -inf does not exist, whatever it holds.
  for (Index j = 0; j < n; ++j) {
    if (weights(j, 0) != -std::numeric_limits<S>::infinity()) continue;
    std::fill_n(k.row(j), k.cols, S(0));
    std::fill_n(v.row(j), v.cols, S(0));
  }
  return {k, v, weights.data, 0};
}

template <class S>
void MemoryLoops<S>::append(const ModelRef<S>& model, const Input<S>& k, const Input<S>& v,
                            const Input<S>& log_weights, Index position, Index& next) {
  for (Index first = 0; first < k.rows(); first += model.block_rows) {
    Workspace::Frame frame;
    const Index n = (std::min)(model.block_rows, k.rows() - first);
    Tokens<S> tokens = load(frame, k, v, log_weights, first, model.root_scale, frame.rows<S>(n, k.cols()));
    tokens.first = position + first;
    const FetchAhead ahead({k.span(first + n, n), v.span(first + n, n)});
    const Progress<S> progress(model, tokens.first, next);
    model.append(model.memory, tokens);
  }
}

template <class S>
void MemoryLoops<S>::read(const ModelRef<S>& model, const Input<S>& q, Index position,
                          RowResults<S>& results) {
  for (Index first = 0; first < q.rows(); first += model.block_rows) {
    Workspace::Frame frame;
    const Index n = (std::min)(model.block_rows, q.rows() - first);
    const Rows<S> queries = frame.rows<S>(n, q.cols());
    q.load(first, model.root_scale, queries);
    const auto out = RowSums<S>::of(frame, n, model.value_dimension);
    const FetchAhead ahead({q.span(first + n, n), results.span(first, n)});
    results.add(model.read(model.memory, {queries, position + first}, out));
    results.take(first, out);
  }
}

template <class S>
void MemoryLoops<S>::advance(const ModelRef<S>& model, const Input<S>& q, const Input<S>& k,
                             const Input<S>& v, const Input<S>& log_weights, Index position, Index& next,
                             RowResults<S>& results) {
  for (Index first = 0; first < q.rows(); first += model.block_rows) {
    Workspace::Frame frame;
    const Index n = (std::min)(model.block_rows, q.rows() - first);
    // Queries lie behind their keys, for maps that take both alike.
    const Rows<S> both = frame.rows<S>(2 * n, q.cols());
    Tokens<S> tokens = load(frame, k, v, log_weights, first, model.root_scale, both.top(n));
    tokens.first = position + first;
    q.load(first, model.root_scale, both.middle(n, n));
    const auto out = RowSums<S>::of(frame, n, model.value_dimension);
    const FetchAhead ahead(
        {k.span(first + n, n), q.span(first + n, n), v.span(first + n, n), results.span(first, n)});
    const Progress<S> progress(model, tokens.first, next);
    results.add(model.advance(model.memory, {both.middle(n, n), tokens.first}, tokens, out));
    results.take(first, out);
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
