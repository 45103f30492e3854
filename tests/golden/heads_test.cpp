// Grouped heads and packed sequences against stored values.
#include <phiattn/attention/head_memories.hpp>
#include <phiattn/attention/heads.hpp>
#include <phiattn/kernels/exponential.hpp>

#include <algorithm>
#include <vector>

#include "golden/cases_run.hpp"

using namespace golden;

namespace {

using phiattn::Heads;
using phiattn::Layout;

template <class S>
std::vector<S> numbers(const nlohmann::json& json) {
  const auto all = json.get<std::vector<double>>();
  std::vector<S> out(all.size());
  std::transform(all.begin(), all.end(), out.begin(), [](double x) { return static_cast<S>(x); });
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("grouped heads equal the stored ones, in one call and from memories", "[golden]", float,
                   double) {
  using S = TestType;
  const auto json = load("grouped_heads_causal.json");
  const Index batch = json["batch"], heads = json["heads"], kv_heads = json["kv_heads"], n = json["tokens"],
              d = json["d"], dv = json["dv"];
  const auto q = numbers<S>(json["q"]), k = numbers<S>(json["k"]), v = numbers<S>(json["v"]);
  const auto due = numbers<double>(json["out"]);
  const phiattn::ExponentialKernel<S> softmax;
  const phiattn::AttentionOptions options{.causality = phiattn::Causality::causal,
                                          .scale = json["scale"].get<double>()};

  std::vector<S> out(due.size());
  const Heads<const S> of_q(q.data(), {batch, heads, n, d}, Layout::bthd),
      of_k(k.data(), {batch, kv_heads, n, d}, Layout::bthd),
      of_v(v.data(), {batch, kv_heads, n, dv}, Layout::bthd);
  const Heads<S> of_out(out.data(), {batch, heads, n, dv}, Layout::bthd);
  const auto error = [&] {
    double worst = 0;
    for (std::size_t i = 0; i < due.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(out[i]) - due[i]));
    return worst;
  };
  const double largest =
      *std::max_element(v.begin(), v.end(), [](S a, S b) { return std::abs(a) < std::abs(b); });
  const double allowed = std::abs(largest) * rounding<S>(d + n, 8);
  phiattn::attention(softmax, of_q, of_k, of_v, of_out, options);
  CHECK(error() <= allowed);

  std::fill(out.begin(), out.end(), S(0));
  phiattn::HeadMemories memories(batch, kv_heads,
                                 phiattn::KeyValueCache(softmax, dv, {.scale = options.scale}));
  for (Index first : {0, 3, 4}) {
    const Index count = first == 0 ? 3 : first == 3 ? 1 : n - 4;
    memories.advance(of_q.tokens(first, count), of_k.tokens(first, count), of_v.tokens(first, count),
                     of_out.tokens(first, count));
  }
  CHECK(error() <= allowed);
}

TEMPLATE_TEST_CASE("packed sequences equal the stored ones", "[golden]", float, double) {
  using S = TestType;
  const auto json = load("packed_sequences_causal.json");
  const auto q = matrix(json["q"]).template cast<S>().eval();
  const auto k = matrix(json["k"]).template cast<S>().eval(), v = matrix(json["v"]).template cast<S>().eval();
  const phiattn::Sequences sequences{json["query_offsets"].get<std::vector<int>>(),
                                     json["key_offsets"].get<std::vector<std::size_t>>()};
  const phiattn::AttentionOptions options{.causality = phiattn::Causality::causal,
                                          .scale = json["scale"].get<double>()};
  const phiattn::ExponentialKernel<S> softmax;
  const double allowed = static_cast<double>(v.cwiseAbs().maxCoeff()) * rounding<S>(q.cols() + k.rows(), 8);
  const phiattn::Matrix<S> out = phiattn::attention(softmax, q, k, v, options, sequences);
  CHECK(distance(out.template cast<double>(), matrix(json["out"])) <= allowed);

  phiattn::Matrix<S> of_heads(q.rows(), v.cols());
  phiattn::attention(softmax, phiattn::packed_heads(q, 1), phiattn::packed_heads(k, 1),
                     phiattn::packed_heads(v, 1), phiattn::packed_heads(of_heads, 1), options, sequences);
  CHECK(distance(of_heads.template cast<double>(), matrix(json["out"])) <= allowed);
}
