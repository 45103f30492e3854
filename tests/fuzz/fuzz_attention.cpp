// One call of attention: any shape, storage, option and special value, against its definition.

#include <limits>

#include "call_draws.hpp"
#include "stored.hpp"

using namespace fuzz;
using laws::Expected;
using laws::Problem;

namespace {

AttentionOptions options(Bytes& bytes, Index n_q, Index n_k) {
  AttentionOptions options = draw_options(bytes, n_q, n_k);
  if (bytes.between(0, 20) == 0) {
    using Limits = std::numeric_limits<Index>;
    options.query_offset = bytes.one_of({Limits::max(), Limits::min(), Limits::max() - n_q});
  }
  return options;
}

enum class Where { query, key, value };
using enum Where;

/// One number that is not like the others.
template <class S>
struct Special {
  Where where;
  Index row, col;
  S number;
};

template <class S>
Special<S> special(Bytes& bytes, const Problem<S>& problem) {
  using Limits = std::numeric_limits<S>;
  const auto where = bytes.one_of({query, key, value});
  const auto& x = where == query ? problem.q : where == key ? problem.k : problem.v;
  if (x.size() == 0) return {where, -1, 0, 0};
  return {where, bytes.between(0, x.rows() - 1), bytes.between(0, x.cols() - 1),
          bytes.one_of({Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max(),
                        Limits::lowest(), Limits::denorm_min(), S(1e30)})};
}

/// What does not depend on the special number is what it was, and what does depend on a NaN is NaN.
template <class S>
void check_special(Bytes& bytes, const laws::Case<S>& similarity, Problem<S> problem, Expected due) {
  const auto [where, row, col, number] = special(bytes, problem);
  if (row < 0) return;
  (where == query ? problem.q : where == key ? problem.k : problem.v)(row, col) = number;
  Matrix<S> out = laws::attend(similarity, problem);
  const oracle::Sees sees = oracle::sees(problem.options, problem.q.rows(), problem.k.rows());
  for (Index i = 0; i < out.rows(); ++i) {
    const bool depends = where == query ? i == row && problem.k.rows() > 0 : sees(i, row);
    if (!depends || (where == query && due.log_normaliser(i) == -oracle::kInfinity)) continue;
    const auto reached = where == value ? out.row(i).segment(col, 1) : out.row(i).segment(0, out.cols());
    if (std::isnan(number)) require(reached.array().isNaN().all(), similarity.name, "a NaN reaches its rows");
    if (where == value) {
      out(i, col) = static_cast<S>(due.out(i, col));
    } else {
      std::erase(due.rows, i);
    }
  }
  require_close(laws::error(out, due), similarity.name, "a special number reaches only its rows");
}

template <class S>
void check(Bytes& bytes) {
  const auto& all = laws::all_cases<S>();
  const auto& similarity =
      all[static_cast<std::size_t>(bytes.between(0, static_cast<Index>(all.size()) - 1))];
  const Index n_q = bytes.between(0, 20), n_k = bytes.between(0, 20), dv = bytes.between(0, 5);
  const Index d = bytes.between(similarity.needs_dimension ? 1 : 0, 6);
  Stored<S, Way::in> q(bytes, draw_tokens<S>(bytes, n_q, d)), k(bytes, draw_tokens<S>(bytes, n_k, d)),
      v(bytes, bytes.gaussian<S>(n_k, dv));
  const Problem<S> problem{q.values(), k.values(), v.values(), options(bytes, n_q, n_k)};
  const Expected due = laws::expected(similarity, problem);
  const Matrix<S> dense = laws::attend(similarity, problem);
  require_close(laws::error(dense, due), similarity.name, "the result is its definition");

  // However tokens are stored, the bits are the same.
  Stored<S, Way::out> out(bytes, Matrix<S>::Zero(n_q, dv));
  out.fill([&](const phiattn::Output<S>& into) {
    similarity.attention(q.input(), k.input(), v.input(), into, problem.options);
  });
  require(laws::same_bits(out.values(), out.narrowed(dense)), similarity.name, "storage makes no difference");
  require(out.gaps_are_untouched(), similarity.name, "nothing is written between the elements");

  check_special(bytes, similarity, problem, due);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  if (bytes.flag()) {
    check<float>(bytes);
  } else {
    check<double>(bytes);
  }
  return 0;
}
