#pragma once

// Included by attention/memory_loops.hpp where that is not compiled elsewhere.

#include <phiattn/attention/memory_loops.hpp>
#include <phiattn/core/float_environment.hpp>

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

/// What a model takes moves the next position on, whether it throws or not; taking nothing moves nothing.
template <class S>
class Progress {
 public:
  Progress(const ModelRef<S>& model, Index position, Index& next)
      : model_(model), before_(model.size(model.memory)), position_(position), next_(next) {}
  ~Progress() {
    const Index taken = model_.size(model_.memory) - before_;
    if (taken > 0) next_ = position_ + taken;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  const ModelRef<S>& model_;
  Index before_, position_;
  Index& next_;
};

/// Calls take(first, n, exist) for each run of tokens that all exist or all do not, in order.
template <class S, class Take>
void in_runs(const Tokens<S>& tokens, const Take& take) {
  const auto exists = [&](Index j) { return tokens.log_weight(j) != -std::numeric_limits<S>::infinity(); };
  for (Index first = 0, end; first < tokens.size(); first = end) {
    const bool exist = exists(first);
    end = tokens.log_weights ? first + 1 : tokens.size();
    while (end < tokens.size() && exists(end) == exist) ++end;
    take(first, end - first, exist);
  }
}

template <class S>
Tokens<S> MemoryLoops<S>::load(Workspace::Frame& frame, const InputView<S>& keys, const InputView<S>& values,
                               const InputView<S>& log_weights, Index first, S root_scale, Rows<S> k) {
  const Index n = k.rows;
  keys.load(first, root_scale, k);
  const Rows<const S> v = values.rows_at(first, frame.rows<S>(n, values.cols()));
  if (!log_weights) return {k, v, nullptr, 0};
  const Rows<S> weights = frame.rows<S>(n, 1);
  log_weights.as_column().load(first, S(1), weights);
  return {k, v, weights.data, 0};
}

template <class S>
void MemoryLoops<S>::append(const ModelRef<S>& model, const InputView<S>& k, const InputView<S>& v,
                            const InputView<S>& log_weights, Index position, Index& next) {
  const FloatEnvironment environment;
  for (Index first = 0; first < k.rows(); first += model.block_rows) {
    Workspace::Frame frame;
    const Index n = (std::min)(model.block_rows, k.rows() - first);
    const Tokens<S> tokens =
        load(frame, k, v, log_weights, first, model.root_scale, frame.rows<S>(n, k.cols()));
    const FetchAhead ahead({k.span(first + n, n), v.span(first + n, n)});
    in_runs(tokens, [&](Index begin, Index count, bool exist) {
      if (!exist) return;
      const Progress<S> progress(model, position, next);
      model.append(model.memory, tokens.middle(begin, count).at(position));
      position += count;
    });
  }
}

template <class S>
void MemoryLoops<S>::read(const ModelRef<S>& model, const InputGroup<S>& q, Index position,
                          RowResults<S>& results) {
  const FloatEnvironment environment;
  const Index heads = q.heads();
  for (Index first = 0; first < q.rows(); first += model.block_rows) {
    Workspace::Frame frame;
    const Index n = (std::min)(model.block_rows, q.rows() - first);
    const Rows<S> queries = frame.rows<S>(heads * n, q.cols());
    q.load(first, model.root_scale, queries);
    const auto out = RowSums<S>::of(frame, heads * n, model.value_dimension);
    const FetchAhead ahead({q.span(first + n, n), results.span(first, n)});
    results.add(read_run(model, {queries, position + first, heads}, out));
    results.take(first, out);
  }
}

template <class S>
AttentionStatus MemoryLoops<S>::read_run(const ModelRef<S>& model, const Queries<S>& queries,
                                         const RowSums<S>& out) {
  if (queries.heads == 1 || model.takes_groups) return model.read(model.memory, queries, out);
  AttentionStatus status;
  for (Index row = 0; row < queries.rows(); ++row) {
    const Queries<S> one{queries.q.middle(row, 1), queries.first + row / queries.heads};
    status.add(model.read(model.memory, one, out.middle(row, 1)), 0);
  }
  return status;
}

template <class S>
AttentionStatus MemoryLoops<S>::advance_run(const ModelRef<S>& model, const Queries<S>& queries,
                                            const Tokens<S>& tokens, const RowSums<S>& out) {
  if (queries.heads == 1 || model.takes_groups) return model.advance(model.memory, queries, tokens, out);
  AttentionStatus status;
  for (Index t = 0; t < tokens.size(); ++t) {
    model.append(model.memory, tokens.middle(t, 1));
    status.add(read_run(model, queries.middle(t, 1), out.middle(queries.heads * t, queries.heads)), 0);
  }
  return status;
}

template <class S>
void MemoryLoops<S>::advance(const ModelRef<S>& model, const InputGroup<S>& q, const InputView<S>& k,
                             const InputView<S>& v, const InputView<S>& log_weights, Index position,
                             Index& next, RowResults<S>& results) {
  const FloatEnvironment environment;
  const Index heads = q.heads();
  for (Index first = 0; first < q.rows(); first += model.block_rows) {
    Workspace::Frame frame;
    const Index n = (std::min)(model.block_rows, q.rows() - first);
    // Queries lie behind their keys, for maps that take both alike.
    const Rows<S> both = frame.rows<S>((1 + heads) * n, q.cols());
    const Tokens<S> tokens = load(frame, k, v, log_weights, first, model.root_scale, both.top(n));
    const Queries<S> queries{both.middle(n, heads * n), 0, heads};
    q.load(first, model.root_scale, both.middle(n, heads * n));
    const auto out = RowSums<S>::of(frame, heads * n, model.value_dimension);
    const FetchAhead ahead(
        {k.span(first + n, n), q.span(first + n, n), v.span(first + n, n), results.span(first, n)});
    in_runs(tokens, [&](Index begin, Index count, bool exist) {
      const Queries<S> some = queries.middle(begin, count);
      const RowSums<S> sums = out.middle(heads * begin, heads * count);
      if (exist) {
        const Progress<S> progress(model, position, next);
        results.add(advance_run(model, some.at(position), tokens.middle(begin, count).at(position), sums));
        position += count;
      } else {
        // Beside the last key that exists they stand, each of them.
        for (Index t = 0; t < count; ++t) {
          results.add(read_run(model, some.middle(t, 1).at(std::max<Index>(next - 1, 0)),
                               sums.middle(heads * t, heads)));
        }
      }
    });
    results.take(first, out);
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
