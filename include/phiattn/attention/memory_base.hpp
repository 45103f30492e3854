#pragma once

// The outside of every memory.

#include <phiattn/attention/memory_loops.hpp>
#include <phiattn/core/check.hpp>
#include <phiattn/core/float_environment.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// Makes a memory of a `Derived` that is a BlockModel: overloads, checks, blocks, positions and the scale. Shapes are
/// checked before anything is changed; append and advance then take one block after the other, and size() says how many
/// tokens were taken, should a model throw.
template <class Derived, detail::ComputeScalar S_>
class MemoryBase {
 public:
  using Scalar = S_;
  using S = S_;

  // Facts and verbs that a model may leave at that.
  static constexpr Order kOrder = Order::any;
  /// Rows at which products are as fast as they get, while what a block costs by its square stays small.
  Index block_rows() const { return kBlockRows; }
  /// Takes in the dimension of q and k, if the constructor did not; throws if it does not fit.
  void settle(Index /*d*/) {}
  /// Throws if `other` differs in what the sum depends on, beside dimensions and scale.
  void check_same(const Derived& /*other*/) const {}
  /// Whether advance_block takes queries of several heads a token, see Queries; else they come after their token, one by one.
  bool takes_groups() const { return false; }
  /// The logit that joins every row's normaliser when it is divided.
  std::optional<S> sink() const { return {}; }
  /// Where a query stands that is read without saying where.
  Index reading_position() const { return 0; }
  /// Whether all but the first n tokens, one of them at least, can be forgotten; if so forget_from(n) does, and returns the
  /// position of the token to come.
  bool can_forget_from(Index /*n*/) const { return false; }
  Index forget_from(Index n) { return n; }
  /// Whether an exception in absorb() leaves all as it was; else merge() works on a copy.
  static constexpr bool kAbsorbsAtOnce = false;

  /// @param k  keys, or weighted(k, log_weights)
  void append(const KeyInput<S>& k, const Input<S>& v) { append(k, v, k.log_weights(), std::nullopt); }
  void append(const Input<S>& k, const Input<S>& v, const Input<S>& log_weights) {
    append(k, v, log_weights, std::nullopt);
  }
  void append(const KeyInput<S>& k, const Input<S>& v, const TokenOptions<S>& options) {
    append(k, v, one_of(k.log_weights(), options.log_weights), options.first);
  }

  Matrix<S> read(const Input<S>& q, std::optional<Index> first = {}) const {
    Matrix<S> out(q.rows(), self().value_dimension());
    read(q, Output<S>(out), first);
    return out;
  }

  AttentionStatus read(const Input<S>& q, const Output<S>& out, std::optional<Index> first = {}) const {
    detail::check_output(out, q, self().value_dimension());
    return out.fill_apart([&](const Output<S>& apart) { return read_heads(q, apart, first); });
  }

  Partial<S> read_partial(const Input<S>& q, std::optional<Index> first = {}) const {
    auto partial = Partial<S>::empty(q.rows(), self().value_dimension());
    read_into(q, first, detail::RowResults<S>(partial));
    return partial;
  }

  Matrix<S> advance(const Input<S>& q, const KeyInput<S>& k, const Input<S>& v,
                    const TokenOptions<S>& options = {}) {
    Matrix<S> out(q.rows(), self().value_dimension());
    advance(q, k, v, Output<S>(out), options);
    return out;
  }

  AttentionStatus advance(const Input<S>& q, const KeyInput<S>& k, const Input<S>& v, const Output<S>& out,
                          const TokenOptions<S>& options = {}) {
    const detail::InputView<S>& log_weights = one_of(k.log_weights(), options.log_weights);
    detail::check_equal("columns of q", q.cols(), "columns of k", k.cols());
    detail::check_equal("rows of q", q.rows(), "rows of k", k.rows());
    check_tokens(k, v, log_weights);
    detail::check_output(out, q, k, v);
    out.check_apart_from("log_weights", log_weights);
    return out.fill_apart([&](const Output<S>& apart) {
      return advance_heads(q, k, v, apart, {.log_weights = log_weights, .first = options.first});
    });
  }

  // The same for the queries of several heads that share these keys, or into a partial. Outputs, and rows of q and k, were
  // checked.
  AttentionStatus read_heads(const detail::InputGroup<S>& q, const detail::OutputGroup<S>& out,
                             std::optional<Index> first) const {
    return read_into(q, first, detail::RowResults<S>(out, self().sink()));
  }
  AttentionStatus read_heads(const detail::InputGroup<S>& q, const detail::PartialRows<S>& out,
                             std::optional<Index> first) const {
    return read_into(q, first, detail::RowResults<S>(out, self().sink()));
  }
  AttentionStatus advance_heads(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                                const detail::InputView<S>& v, const detail::PartialRows<S>& out,
                                const TokenOptions<S>& options) {
    check_tokens(k, v, options.log_weights);
    self().settle(k.cols());
    return advance_into(q, k, v, options, detail::RowResults<S>(out, self().sink()));
  }
  AttentionStatus advance_heads(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                                const detail::InputView<S>& v, const detail::OutputGroup<S>& out,
                                const TokenOptions<S>& options) {
    check_tokens(k, v, options.log_weights);
    self().settle(k.cols());
    if constexpr (detail::StepModel<Derived>) {
      if (k.rows() == 1 && !options.log_weights && self().advance_step(q, k, v, root_scale(), out)) {
        next_ = place(options.first) + 1;
        return {};
      }
    }
    return advance_into(q, k, v, options, detail::RowResults<S>(out, self().sink()));
  }

  /// Forgets all tokens; positions start at 0 again. Dimension, scale, options and what was fitted stay.
  void clear() {
    static_assert(ClearableModel<Derived>, "phiattn: clear() and truncate() want a memory's forget_all()");
    self().forget_all();
    next_ = 0;
  }

  /// Forgets all but the first n tokens, exactly: what comes next is as if the others had never come. Caches can do that,
  /// windows as long as no token has left them, and every memory for n = size() and n = 0.
  /// @throws std::invalid_argument  if n < 0 or n > size(), and where it cannot be done; then nothing has changed
  void truncate(Index n) {
    check_truncate(n);
    if (n == self().size()) return;
    if (n == 0) return clear();
    next_ = self().forget_from(n);
  }

  /// Throws where truncate(n) would.
  void check_truncate(Index n) const {
    const Index all = self().size();
    if (n < 0 || n > all || (n > 0 && n < all && !self().can_forget_from(n))) {
      detail::fail_argument("n of truncate: got " + std::to_string(n) + ", expected 0 or " +
                            std::to_string(all) +
                            (n < 0 || n > all ? " (size), or a number between"
                                              : " (size): these tokens do not stand by themselves any more"));
    }
  }

  /// Adds the tokens of `other`, which keep their positions; those that come later follow the last of both. All or
  /// nothing, should it throw.
  /// @throws std::invalid_argument  if the two differ in what the sum depends on: dimensions, scale, options, centres,
  ///                                reparametrisation, or what their maps or kernels make of a few tokens, to 1e-4
  void merge(const Derived& other) {
    if (&other == this) return merge(Derived(other));
    detail::check_equal("dv of the other memory", other.value_dimension(), "dv of this one",
                        self().value_dimension());
    const std::optional<Index> theirs = other.dimension();
    if (theirs) {
      check_dimension("dimension d of the other memory", *theirs);
      std::optional<double> scale = self().scale();
      if (!std::optional<Index>(self().dimension())) {
        Derived settled = self();  // empty
        settled.settle(*theirs);
        scale = settled.scale();
      }
      const std::optional<double> their_scale = other.scale();
      if (scale && their_scale && *scale != *their_scale) {
        detail::fail_argument("merge: the memories differ in scale");
      }
    }
    const detail::FloatEnvironment environment;
    self().check_same(other);
    if constexpr (Derived::kAbsorbsAtOnce) {
      self().absorb(other);
      if (theirs) self().settle(*theirs);
    } else {
      Derived merged = self();
      if (theirs) merged.settle(*theirs);
      merged.absorb(other);
      self() = std::move(merged);
    }
    next_ = (std::max)(next_, other.next_);
  }

 protected:
  static constexpr Index kBlockRows = 64;

  /// Goes on where another memory stood.
  template <class M>
  void follow(const MemoryBase<M, S_>& other) {
    next_ = other.next_;
  }

  ~MemoryBase() = default;
  MemoryBase() = default;
  MemoryBase(const MemoryBase&) = default;
  MemoryBase& operator=(const MemoryBase&) = default;
  MemoryBase(MemoryBase&&) noexcept = default;
  MemoryBase& operator=(MemoryBase&&) noexcept = default;

  void check_dimension(const char* what, Index d) const {
    const std::optional<Index> due = self().dimension();
    if (due) detail::check_equal(what, d, "dimension d", *due);
  }

 private:
  static const detail::InputView<S>& one_of(const detail::InputView<S>& of_keys,
                                            const detail::InputView<S>& given) {
    if (of_keys && given) detail::fail_argument("log_weights: got them with the keys and beside them");
    return of_keys ? of_keys : given;
  }

  using Model = detail::ModelRef<S>;
  using Loops = detail::MemoryLoops<S>;

  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  void check_tokens(const detail::InputView<S>& k, const detail::InputView<S>& v,
                    const detail::InputView<S>& log_weights) const {
    check_dimension("columns of k", k.cols());
    detail::check_keys_and_values(k, v, k.cols(), self().value_dimension());
    if (log_weights) {
      detail::check_vector("log_weights", log_weights.rows(), log_weights.cols(), "rows of k", k.rows());
    }
  }

  S root_scale() const {
    return static_cast<S>(std::sqrt(std::optional<double>(self().scale()).value_or(1)));
  }

  /// Where the first of some tokens stands.
  Index place(std::optional<Index> first) const { return detail::countable(first.value_or(next_)); }

  void append(const detail::InputView<S>& k, const detail::InputView<S>& v,
              const detail::InputView<S>& log_weights, std::optional<Index> first) {
    check_tokens(k, v, log_weights);
    self().settle(k.cols());
    Loops::append(Model::of(self()), k, v, log_weights, place(first), next_);
  }

  AttentionStatus advance_into(const detail::InputGroup<S>& q, const detail::InputView<S>& k,
                               const detail::InputView<S>& v, const TokenOptions<S>& options,
                               detail::RowResults<S> results) {
    Loops::advance(Model::of(self()), q, k, v, options.log_weights, place(options.first), next_, results);
    return results.finish();
  }

  AttentionStatus read_into(const detail::InputGroup<S>& q, std::optional<Index> first,
                            detail::RowResults<S> results) const {
    check_dimension("columns of q", q.cols());
    const Index position = detail::countable(first.value_or(self().reading_position()));
    // Only advance and append change it.
    Loops::read(Model::of(const_cast<Derived&>(self())), q, position, results);
    return results.finish();
  }

  template <class Other, detail::ComputeScalar Scalar_>
  friend class MemoryBase;

  Index next_ = 0;  // position of the next token
};

}  // namespace phiattn::inline PHIATTN_ABI
