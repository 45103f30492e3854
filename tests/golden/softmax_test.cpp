// Softmax attention against stored values: out, weights and log-sum-exp.
#include <phiattn/kernels/exponential.hpp>

#include "golden/cases_run.hpp"

using namespace golden;

namespace {

/// max_ij sum_c |q_ic k_jc| scale
double largest_score(const Case& given) {
  return given.scale * products(given.q.cwiseAbs(), given.k.cwiseAbs()).maxCoeff();
}

}  // namespace

TEMPLATE_TEST_CASE("softmax attention equals the stored one by every way to run it", "[golden]", float,
                   double) {
  for (const char* file :
       {"softmax_full_default.json", "softmax_full_scale0p3.json", "softmax_causal_default.json",
        "softmax_causal_scale0p3.json", "softmax_cross.json"}) {
    CAPTURE(file);
    const nlohmann::json json = load(file);
    const Case given(json);
    const phiattn::ExponentialKernel<TestType> softmax;
    const double error = rounding<TestType>(given.q.cols() + given.k.rows(), largest_score(given));

    check_out(softmax, given, matrix(json["out"]), error * given.largest_value());
    if (json.contains("attn")) {
      CHECK(distance(weights(softmax, given), matrix(json["attn"])) <= error);
    }
    if (json.contains("lse")) {
      CHECK(distance(read_each_query(softmax, given).log_normaliser, vector(json["lse"])) <= error);
    }
  }
}

TEST_CASE("the default scale of softmax attention is 1/sqrt(d)", "[golden]") {
  for (const char* file : {"softmax_full_default.json", "softmax_causal_default.json"}) {
    const Case given(load(file));
    phiattn::AttentionOptions unscaled = given.options;
    unscaled.scale.reset();
    const phiattn::ExponentialKernel<double> softmax;
    CHECK(phiattn::attention(softmax, given.q, given.k, given.v, unscaled) ==
          phiattn::attention(softmax, given.q, given.k, given.v, given.options));
  }
}
