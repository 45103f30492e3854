// Linear attention with positive feature maps against stored values: FAVOR+, hyperbolic features, elu + 1.
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>

#include <utility>

#include "golden/cases.hpp"

using namespace golden;

namespace {

/// max over queries, keys and features of the absolute terms in
/// omega.q - |q|^2/2 + omega.k - |k|^2/2 - log m, of which attention drops the query's own.
double largest_exponent(const Case& given, const Matrix<double>& omega) {
  const Matrix<double> q = given.scaled(given.q), k = given.scaled(given.k);
  const auto projected = [&](const Matrix<double>& x) {
    return products(omega.cwiseAbs(), x.cwiseAbs()).maxCoeff();
  };
  return projected(q) + projected(k) + k.rowwise().squaredNorm().maxCoeff() / 2 +
         std::log(static_cast<double>(omega.rows()));
}

double largest_query_norm(const Case& given) {
  return given.scaled(given.q).rowwise().squaredNorm().maxCoeff() / 2;
}

/// phi(q) and varphi(k) at the scale of the case
template <class Map>
std::pair<Matrix<double>, Matrix<double>> features(const Map& map, const Case& given) {
  using S = typename Map::Scalar;
  const Matrix<S> q = given.scaled(given.q).cast<S>(), k = given.scaled(given.k).cast<S>();
  return {map.query_features(q).template cast<double>(), map.key_features(k).template cast<double>()};
}

template <class Map>
Matrix<double> normaliser(const Map& map, const Case& given) {
  return read_each_query(map, given).log_normaliser.array().exp();
}

}  // namespace

TEMPLATE_TEST_CASE("FAVOR+ attention equals the stored one by every way to run it", "[golden]", float,
                   double) {
  for (const char* file : {"favor_plus_full.json", "favor_plus_causal.json", "favor_plus_cross.json",
                           "favor_plus_extreme_full.json", "favor_plus_extreme_causal.json",
                           "favor_plus_extreme_mixed_full.json", "favor_plus_extreme_mixed_causal.json",
                           "favor_plus_adversarial_causal.json"}) {
    CAPTURE(file);
    const nlohmann::json json = load(file);
    const Case given(json);
    const Matrix<double> omega = matrix(json["W"]);
    const phiattn::PositiveRandomFeatures<TestType> favor(omega.cast<TestType>());
    const Index terms = given.q.cols() + given.k.rows() + omega.rows();
    const double exponent = largest_exponent(given, omega);
    const double error = rounding<TestType>(terms, exponent);
    const double full_error = rounding<TestType>(terms, exponent + largest_query_norm(given));

    check_out(favor, given, matrix(json["out"]), error * given.largest_value());
    if (json.contains("log_normaliser")) {
      CHECK(distance(read_each_query(favor, given).log_normaliser, vector(json["log_normaliser"])) <=
            full_error);
    }
    if (json.contains("phi_q")) {
      const auto [phi_q, phi_k] = features(favor, given);
      CHECK(relative_distance(phi_q, matrix(json["phi_q"])) <= full_error);
      CHECK(relative_distance(phi_k, matrix(json["phi_k"])) <= full_error);
    }
    if (json.contains("attn")) {
      CHECK(distance(weights(favor, given), matrix(json["attn"])) <= error);
    }
  }
}

TEMPLATE_TEST_CASE("hyperbolic features are positive random features of frequencies with their negatives",
                   "[golden]", float, double) {
  const nlohmann::json json = load("features_hyperbolic.json");
  const Case given(json);
  const Matrix<double> w = matrix(json["W"]);
  Matrix<double> omega(2 * w.rows(), w.cols());
  omega << w, -w;
  const phiattn::PositiveRandomFeatures<TestType> map(omega.cast<TestType>());
  const double error = rounding<TestType>(given.q.cols() + given.k.rows() + omega.rows(),
                                          largest_exponent(given, omega) + largest_query_norm(given));

  const auto [phi_q, phi_k] = features(map, given);
  CHECK(relative_distance(phi_q, matrix(json["phi_q"])) <= error);
  CHECK(relative_distance(phi_k, matrix(json["phi_k"])) <= error);
  CHECK(relative_distance(products(phi_q, phi_k), matrix(json["kernel"])) <= error);
  CHECK(relative_distance(normaliser(map, given), vector(json["normaliser"])) <= error);
  check_out(map, given, matrix(json["out"]), error * given.largest_value());
}

TEMPLATE_TEST_CASE("elu + 1 attention equals the stored one by every way to run it", "[golden]", float,
                   double) {
  for (const char* file : {"elu1_full.json", "elu1_causal.json"}) {
    CAPTURE(file);
    const nlohmann::json json = load(file);
    const Case given(json);
    const phiattn::EluFeatures<TestType> elu(given.q.cols());
    const double exponent = given.q.cwiseAbs().maxCoeff() + given.k.cwiseAbs().maxCoeff();
    const double error = rounding<TestType>(given.q.cols() + given.k.rows(), exponent);

    check_out(elu, given, matrix(json["out"]), error * given.largest_value());
    CHECK(relative_distance(normaliser(elu, given), vector(json["normaliser"])) <= error);
  }
}

TEST_CASE("the default scales are 1/sqrt(d) for positive random features and 1 for elu + 1", "[golden]") {
  const nlohmann::json favor_json = load("favor_plus_full.json");
  const Case favor_case(favor_json);  // d = 4, scale 1/2
  const phiattn::PositiveRandomFeatures<double> favor(matrix(favor_json["W"]));
  CHECK(phiattn::attention(favor, favor_case.q, favor_case.k, favor_case.v) ==
        phiattn::attention(favor, favor_case.q, favor_case.k, favor_case.v, favor_case.options));

  const Case elu_case(load("elu1_full.json"));  // scale 1
  const phiattn::EluFeatures<double> elu(4);
  CHECK(phiattn::attention(elu, elu_case.q, elu_case.k, elu_case.v) ==
        phiattn::attention(elu, elu_case.q, elu_case.k, elu_case.v, elu_case.options));
}
