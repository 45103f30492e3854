// How to add a memory: the README's, alone and behind a window.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/head_memories.hpp>
#include <phiattn/memories/window.hpp>

#include "support/catch.hpp"

namespace pa = phiattn;

namespace {

class MeanMemory : public pa::MemoryBase<MeanMemory, float> {  // every token weighs 1, whatever the query
 public:
  explicit MeanMemory(pa::Index dv) : sum_(pa::RowVector<float>::Zero(dv)) {}
  pa::Index size() const { return size_; }
  pa::Index value_dimension() const { return sum_.size(); }
  std::optional<pa::Index> dimension() const { return {}; }  // any
  std::optional<double> scale() const { return {}; }

  void append_block(const pa::Tokens<float>& tokens) {
    for (pa::Index j = 0; j < tokens.size(); ++j) take(tokens, j);
  }
  pa::AttentionStatus read_block(const pa::Queries<float>& queries, const pa::RowSums<float>& out) const {
    for (pa::Index t = 0; t < queries.size(); ++t) write(out, t);
    return {};
  }
  pa::AttentionStatus advance_block(const pa::Queries<float>&, const pa::Tokens<float>& tokens,
                                    const pa::RowSums<float>& out) {
    for (pa::Index t = 0; t < tokens.size(); ++t) take(tokens, t), write(out, t);
    return {};
  }
  void absorb(const MeanMemory& other) { sum_ += other.sum_, mass_ += other.mass_, size_ += other.size_; }

 private:
  void take(const pa::Tokens<float>& tokens, pa::Index j) {
    const float weight = std::exp(tokens.log_weight(j));
    sum_ += weight * tokens.v.eigen().row(j), mass_ += weight, ++size_;
  }
  void write(const pa::RowSums<float>& out, pa::Index t) const {  // undivided, and times exp(-log_scale)
    out.set_nothing(t);
    if (mass_ > 0) out.row(t) = sum_, out.normaliser[t] = mass_, out.log_scale[t] = 0;
  }

  pa::RowVector<float> sum_;
  float mass_ = 0;
  pa::Index size_ = 0;
};
static_assert(pa::Memory<MeanMemory> && pa::BlockModel<MeanMemory>);

}  // namespace

TEST_CASE("a memory of one's own takes three verbs and five facts") {
  const pa::Matrix<float> x = pa::Matrix<float>::Random(150, 6);
  for (const auto causality : {pa::Causality::none, pa::Causality::causal}) {
    const pa::AttentionOptions options{.causality = causality};
    const auto due = pa::attention(pa::uniform_kernel<float>(), x, x, x, options);
    CHECK(pa::maximal_error(pa::attention(MeanMemory(6), x, x, x, options), due) < 1e-5);
  }
  // Behind a window of all it holds nothing.
  const pa::AttentionOptions causal{.causality = pa::Causality::causal};
  const auto exact = pa::attention(pa::ExponentialKernel<float>(), x, x, x, causal);
  CHECK(pa::maximal_error(pa::attention(pa::Windowed(200, MeanMemory(6)), x, x, x, causal), exact) < 1e-5);
  // Keys of length 0 weigh 1 nearby too.
  const pa::Matrix<float> zero = pa::Matrix<float>::Zero(150, 6);
  const auto mean = pa::attention(pa::uniform_kernel<float>(), x, zero, x, causal);
  CHECK(pa::maximal_error(pa::attention(pa::Windowed(9, MeanMemory(6)), x, zero, x, causal), mean) < 1e-5);
}

TEST_CASE("a memory that knows one query a token takes heads that share it one after the other") {
  const pa::Matrix<float> q = pa::Matrix<float>::Random(6, 4), k = pa::Matrix<float>::Random(6, 2);
  const pa::Matrix<float> v = pa::Matrix<float>::Random(6, 3);
  pa::Matrix<float> out(6, 6);
  pa::HeadMemories memories(1, 1, pa::Windowed(2, MeanMemory(3)));
  memories.advance(pa::packed_heads(q, 2), pa::packed_heads(k, 1), pa::packed_heads(v, 1),
                   pa::packed_heads(out, 2));
  for (pa::Index h = 0; h < 2; ++h) {
    pa::Windowed alone(2, MeanMemory(3));
    CHECK((out.middleCols(3 * h, 3) - alone.advance(q.middleCols(2 * h, 2), k, v)).cwiseAbs().maxCoeff() <=
          1e-6F);
  }
}
