// Masks, biases, caps, sinks and weighted keys against stored values: in one call, with log-normalisers, and from a cache.
#include <phiattn/kernels/exponential.hpp>
#include <phiattn/kernels/with.hpp>

#include <vector>

#include "golden/cases.hpp"

using namespace golden;

namespace {

template <class S>
using Softmax = phiattn::ModifiedKernel<phiattn::ExponentialKernel<S>>;

/// The modifiers that a file states.
template <class S>
Softmax<S> modified(const nlohmann::json& json) {
  auto kernel = phiattn::with(phiattn::ExponentialKernel<S>());
  if (json.contains("slope")) kernel = phiattn::with(kernel, phiattn::Alibi{json["slope"]});
  if (json.contains("cap")) kernel = phiattn::with(kernel, phiattn::SoftCap{json["cap"]});
  if (json.contains("sink_logit")) kernel = phiattn::with(kernel, phiattn::Sink{json["sink_logit"]});
  if (json.contains("prefix")) kernel = phiattn::with(kernel, phiattn::PrefixCausal{json["prefix"]});
  if (json.contains("left"))
    kernel = phiattn::with(kernel, phiattn::SlidingWindow{json["left"], json["right"]});
  if (json.contains("bias")) kernel = phiattn::with(kernel, phiattn::Bias(matrix(json["bias"])));
  if (json.contains("log_decay"))
    kernel = phiattn::with(kernel, phiattn::Forgetting(vector(json["log_decay"])));
  if (json.contains("documents")) {
    kernel = phiattn::with(kernel, phiattn::Documents(json["documents"].get<std::vector<int>>()));
  }
  if (json.contains("mask")) kernel = phiattn::with(kernel, phiattn::BooleanMask(matrix(json["mask"])));
  return kernel;
}

template <class S>
Vector<S> log_weights(const nlohmann::json& json) {
  Vector<S> weights = Vector<S>::Zero(static_cast<Index>(json["k"].size()));
  if (!json.contains("log_weights")) return weights;
  for (Index j = 0; j < weights.size(); ++j) {
    const auto& weight = json["log_weights"][static_cast<std::size_t>(j)];
    weights(j) =
        weight.is_null() ? -std::numeric_limits<S>::infinity() : static_cast<S>(weight.get<double>());
  }
  return weights;
}

}  // namespace

TEMPLATE_TEST_CASE("modified scores equal the stored ones", "[golden]", float, double) {
  using S = TestType;
  for (const char* file :
       {"alibi_causal", "bias", "boolean_mask", "documents_causal", "prefix_causal", "sink_causal",
        "sliding_window_both", "sliding_window_causal", "soft_cap_causal", "weighted_keys"}) {
    CAPTURE(file);
    const nlohmann::json json = load(std::string("scores_") + file + ".json");
    const Case given(json);
    const Matrix<S> q = given.q.cast<S>(), k = given.k.cast<S>(), v = given.v.cast<S>();
    phiattn::AttentionOptions options = given.options;
    if (!given.causal() && json.contains("left")) options.query_offset = 4;
    const auto kernel = modified<S>(json);
    const Matrix<double> due = matrix(json["out"]);
    const double error = rounding<S>(given.q.cols() + given.k.rows(), 8) * given.largest_value();
    const Vector<S> weights = log_weights<S>(json);

    phiattn::Partial<S> partial;
    phiattn::attention(kernel, q, phiattn::weighted(k, weights), v, partial, options);
    CHECK(distance(partial.out.template cast<double>(), due) <= error);
    const auto normalisers = json["log_normaliser"];
    for (Index i = 0; i < q.rows(); ++i) {
      const auto& stored = normalisers[static_cast<std::size_t>(i)];
      if (stored.is_null()) {
        CHECK(partial.log_normaliser(i) == -std::numeric_limits<S>::infinity());
      } else {
        CHECK(std::abs(static_cast<double>(partial.log_normaliser(i)) - stored.get<double>()) <=
              rounding<S>(given.q.cols() + given.k.rows(), 8));
      }
    }
    for (const Index chunk : {1, 3, 128}) {
      options.chunk = chunk;
      const Matrix<S> out = phiattn::attention(kernel, q, phiattn::weighted(k, weights), v, options);
      CHECK(distance(out.template cast<double>(), due) <= error);
      if (json.contains("log_weights")) continue;
      CHECK(phiattn::attention(kernel, q, k, v, options) == out);
    }
    if (json.contains("prefix")) {
      options.causality = phiattn::Causality::none;
      options.query_offset = 4;
      const Matrix<S> out = phiattn::attention(kernel, q, k, v, options);
      CHECK(distance(out.template cast<double>(), due) <= error);
    }
    if (!given.causal() || json.contains("prefix")) continue;
    phiattn::KeyValueCache<Softmax<S>> cache(kernel, v.cols(), {.scale = given.scale});
    Matrix<S> out(q.rows(), v.cols());
    cache.append(k.topRows(4), v.topRows(4));
    for (const auto& [first, n] : {std::pair<Index, Index>{0, 1}, {1, 4}, {5, 2}}) {
      cache.advance(q.middleRows(first, n), k.middleRows(4 + first, n), v.middleRows(4 + first, n),
                    out.middleRows(first, n));
    }
    CHECK(distance(out.template cast<double>(), due) <= error);
  }
}

TEMPLATE_TEST_CASE("softmax attention with a forget gate equals the stored one", "[golden]", float, double) {
  using S = TestType;
  const nlohmann::json json = load("recurrence_forgetting_softmax.json");
  const Case given(json);
  phiattn::AttentionOptions options = given.options;
  options.causality = phiattn::Causality::causal;
  const Matrix<S> q = given.q.cast<S>(), k = given.k.cast<S>(), v = given.v.cast<S>();
  const Matrix<S> out = phiattn::attention(modified<S>(json), q, k, v, options);
  CHECK(distance(out.template cast<double>(), matrix(json["out"])) <=
        rounding<S>(q.cols() + k.rows(), 16) * given.largest_value());
}
