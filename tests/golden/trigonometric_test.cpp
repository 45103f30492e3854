// Trigonometric random features against stored values: the features, the kernel, the normaliser and the output.
#include <phiattn/feature_maps/trigonometric.hpp>

#include "golden/cases.hpp"

using namespace golden;

TEMPLATE_TEST_CASE("trigonometric features and their attention equal the stored ones by every way to run it",
                   "[golden]", float, double) {
  const nlohmann::json json = load("features_trig.json");
  const Case given(json);
  const Matrix<double> w = matrix(json["W"]);
  const phiattn::TrigonometricFeatures<TestType> map(w.cast<TestType>());
  const Matrix<double> q = given.scaled(given.q), k = given.scaled(given.k);
  const Index terms = q.cols() + k.rows() + map.feature_dimension();

  // A cosine errs by as much as its angle; relative to exp(|x|^2/2) / sqrt(m'), the largest a feature can be.
  const auto largest_angle = [&](const Matrix<double>& x) {
    return products(w.cwiseAbs(), x.cwiseAbs()).maxCoeff();
  };
  const auto half_norms = [](const Matrix<double>& x) -> Vector<double> {
    return x.rowwise().squaredNorm() / 2;
  };
  const double error = rounding<TestType>(
      terms, largest_angle(q) + largest_angle(k) + half_norms(q).maxCoeff() + half_norms(k).maxCoeff());
  const auto sizes = [&](const Matrix<double>& x) -> Matrix<double> {
    return (half_norms(x).array().exp() / std::sqrt(static_cast<double>(w.rows())))
        .matrix()
        .replicate(1, map.feature_dimension());
  };
  const Matrix<TestType> q_in = q.cast<TestType>(), k_in = k.cast<TestType>();
  const Matrix<double> phi_q = map.query_features(q_in).template cast<double>();
  const Matrix<double> phi_k = map.key_features(k_in).template cast<double>();
  CHECK(distance(phi_q, matrix(json["phi_q"]), sizes(q)) <= error);
  CHECK(distance(phi_k, matrix(json["phi_k"]), sizes(k)) <= error);

  const Matrix<double> kernel = matrix(json["kernel"]);
  const Matrix<double> largest =
      half_norms(q).array().exp().matrix() * half_norms(k).array().exp().matrix().transpose();
  CHECK(distance(products(phi_q, phi_k), kernel, largest) <= error);

  // Terms cancel in the normaliser: its error is that of their sizes.
  const Vector<double> normaliser = vector(json["normaliser"]);
  const Vector<double> allowed = error * largest.rowwise().sum();
  const auto read = read_each_query(map, given);
  CHECK(distance(Matrix<double>(read.log_normaliser.array().exp() * read.sign.array()), normaliser,
                 allowed) <= 1);
  const double condition = allowed.cwiseQuotient(normaliser.cwiseAbs()).maxCoeff();
  REQUIRE(condition < 0.01);
  check_out(map, given, matrix(json["out"]), condition * given.largest_value());
}
