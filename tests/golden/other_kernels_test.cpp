// Gaussian, cosine, Nystrom and cosFormer attention against stored values.
#include <phiattn/feature_maps/cosformer.hpp>
#include <phiattn/feature_maps/nystrom.hpp>
#include <phiattn/kernels/cosine.hpp>
#include <phiattn/kernels/gaussian.hpp>

#include "golden/cases_run.hpp"

using namespace golden;

namespace {

/// max over all rows of (|q|^2 + |k|^2) / sigma^2, which bounds the terms of |q - k|^2 / (2 sigma^2).
double largest_exponent(const Matrix<double>& q, const Matrix<double>& k, double sigma) {
  return (q.rowwise().squaredNorm().maxCoeff() + k.rowwise().squaredNorm().maxCoeff()) / (sigma * sigma);
}

/// sim(q, k)
template <class F>
Matrix<double> similarities(const F& similarity, const Case& given) {
  using S = typename F::Scalar;
  const Matrix<S> q = given.q.cast<S>(), k = given.k.cast<S>();
  if constexpr (phiattn::LogKernel<F>) {
    Matrix<S> tile(q.rows(), k.rows());
    similarity.similarity(q, k, tile);
    return tile.template cast<double>().array().exp();
  } else {
    return products(similarity.query_features(q).template cast<double>(),
                    similarity.key_features(k).template cast<double>());
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Gaussian attention equals the stored one by every way to run it", "[golden]", float,
                   double) {
  const nlohmann::json json = load("gaussian_attention.json");
  const Case given(json);
  const double sigma = json["sigma"].get<double>();
  const phiattn::GaussianKernel<TestType> gaussian(sigma);
  const double error =
      rounding<TestType>(given.q.cols() + given.k.rows(), largest_exponent(given.q, given.k, sigma));

  const Matrix<double> kernel = matrix(json["kernel"]);
  CHECK(relative_distance(similarities(gaussian, given), kernel) <= error);
  check_out(gaussian, given, matrix(json["out"]), error * given.largest_value());
  // The sums before they are divided.
  const auto read = read_each_query(gaussian, given);
  const Vector<double> normaliser = read.log_normaliser.array().exp();
  const Vector<double> sizes = error * given.largest_value() * kernel.rowwise().sum();
  CHECK(distance(normaliser.asDiagonal() * read.out, matrix(json["out_unnormalised"]),
                 2 * sizes.replicate(1, given.v.cols())) <= 1);
}

TEMPLATE_TEST_CASE("cosine attention equals the stored one by every way to run it", "[golden]", float,
                   double) {
  const nlohmann::json json = load("cosine_attention.json");
  const Case given(json);
  const double tau = json["tau"].get<double>();
  check_out(phiattn::CosineKernel<TestType>(tau), given, matrix(json["out"]),
            rounding<TestType>(given.q.cols() + given.k.rows(), tau) * given.largest_value());
}

TEMPLATE_TEST_CASE("Nystrom attention of the Gaussian kernel equals the stored one by every way to run it",
                   "[golden]", float, double) {
  const nlohmann::json json = load("nystrom_gaussian.json");
  const Case given(json);
  const double sigma = json["sigma"].get<double>();
  const Matrix<double> landmarks = matrix(json["landmarks"]);
  const phiattn::NystromFeatures map(phiattn::GaussianKernel<TestType>(sigma), landmarks,
                                     {.jitter = json["jitter"].get<double>()});
  // Similarities and their inverse root are rounded; |phi| <= 1, and the inverse enlarges errors by at most
  // 1/jitter. These landmarks are apart: by less than 10.
  const double error = 10 * rounding<TestType>(given.q.cols() + given.k.rows() + 2 * landmarks.rows(),
                                               largest_exponent(given.q, landmarks, sigma) +
                                                   largest_exponent(landmarks, given.k, sigma));
  CHECK(distance(similarities(map, given), matrix(json["kernel"])) <= error);

  const Vector<double> normaliser = vector(json["normaliser"]);
  const auto keys = static_cast<double>(given.k.rows());
  const auto read = read_each_query(map, given);
  const Vector<double> came = read.sign.array() * read.log_normaliser.array().exp();
  CHECK(distance(came, normaliser) <= keys * error);
  const double condition = keys / normaliser.cwiseAbs().minCoeff();
  check_out(map, given, matrix(json["out"]), condition * error * given.largest_value());
}

TEMPLATE_TEST_CASE("cosFormer attention equals the stored one in chunks of any size", "[golden]", float,
                   double) {
  const nlohmann::json json = load("cosformer.json");
  Case given(json);
  given.options.query_offset = 0;
  const phiattn::CosformerFeatures<TestType> map(given.q.cols(), json["M"].get<Index>());
  const Matrix<TestType> q = given.q.cast<TestType>(), k = given.k.cast<TestType>(),
                         v = given.v.cast<TestType>();

  // Relative to relu(q) . relu(k), of which the cosine takes away. The last query has but one small coordinate.
  const Vector<double> normaliser = vector(json["normaliser"]);
  const Vector<double> terms = products(given.q.cwiseMax(0), given.k.cwiseMax(0)).rowwise().sum();
  const double error = rounding<TestType>(2 * given.q.cols() + given.k.rows(), 1);
  const double condition = terms.cwiseQuotient(normaliser.cwiseAbs()).maxCoeff();
  const Matrix<double> out = matrix(json["out"]);
  for (Index chunk = 1; chunk <= k.rows(); ++chunk) {
    CAPTURE(chunk);
    given.options.chunk = chunk;
    CHECK(distance(phiattn::attention(map, q, k, v, given.options).template cast<double>(), out) <=
          condition * error * given.largest_value());
    phiattn::LinearState state(map, v.cols(), phiattn::detail::memory_options(given.options));
    state.append(k, v);
    const auto partial = state.read_partial(q);
    CHECK(distance(partial.log_normaliser.template cast<double>().array().exp(), normaliser, terms) <= error);
    CHECK((partial.sign.array() == 1).all());
  }
}
