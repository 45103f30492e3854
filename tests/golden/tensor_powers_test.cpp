// Taylor and exponential-limit attention against stored values: the monomials one by one, then the operator, each
// with the feature map in both layouts and with the explicit kernel.
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/polynomial.hpp>

#include "golden/cases_run.hpp"

using namespace golden;

namespace {

struct Family {
  const char* file;
  phiattn::TensorPower power;
};
constexpr Family kFamilies[] = {{"taylor_n2.json", phiattn::TensorPower::taylor},
                                {"taylor_n3.json", phiattn::TensorPower::taylor},
                                {"explim_n3.json", phiattn::TensorPower::exponential_limit},
                                {"explim_n4.json", phiattn::TensorPower::exponential_limit}};

template <class S>
phiattn::PolynomialKernel<S> kernel_of(phiattn::TensorPower power, Index n) {
  using Kernel = phiattn::PolynomialKernel<S>;
  return power == phiattn::TensorPower::taylor ? Kernel::taylor(n) : Kernel::exponential_limit(n);
}

/// The polynomial, term by term.
double polynomial(phiattn::TensorPower power, Index n, double x) {
  double sum = 0, term = 1;
  for (Index m = 0; m <= n; ++m) {
    sum += term;
    const double ratio =
        power == phiattn::TensorPower::taylor ? 1 : static_cast<double>(n - m) / static_cast<double>(n);
    term *= x * ratio / static_cast<double>(m + 1);
  }
  return sum;
}

/// A polynomial p of degree n with coefficients >= 0 has |x| p'(|x|) <= n p(|x|): a relative error e of each product in
/// x = q . k gives at most n e p(|q| . |k|).
Matrix<double> absolute_terms(phiattn::TensorPower power, Index n, const Matrix<double>& q,
                              const Matrix<double>& k) {
  return products(q.cwiseAbs(), k.cwiseAbs()).unaryExpr([=](double x) { return polynomial(power, n, x); });
}

/// Attention of one similarity, full and causal, with its normaliser; `error` relative to the absolute terms.
template <class F>
void check_attention(const F& similarity, Case given, const nlohmann::json& json, const Matrix<double>& terms,
                     double error) {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    const nlohmann::json& stored = json[causal ? "causal" : "full"];
    given.options.causality = causal ? phiattn::Causality::causal : phiattn::Causality::none;
    Matrix<double> seen = terms;
    if (causal) seen.triangularView<Eigen::StrictlyUpper>().setZero();

    const Vector<double> normaliser = vector(stored["normaliser"]);
    const Vector<double> allowed = error * seen.rowwise().sum();
    const double condition = allowed.cwiseQuotient(normaliser.cwiseAbs()).maxCoeff();
    check_out(similarity, given, matrix(stored["out"]), condition * given.largest_value());

    const auto read = read_each_query(similarity, given);
    const Matrix<double> sums = read.log_normaliser.array().exp() * read.sign.array();
    CHECK(distance(sums, normaliser, allowed) <= 1);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("tensor powers: the stored monomials in the stored order", "[golden]", float, double) {
  for (const auto& [file, power] : kFamilies) {
    CAPTURE(file);
    const nlohmann::json json = load(file);
    const Index n = json["n"].get<Index>();
    const Matrix<double> q = matrix(json["small_q"]), k = matrix(json["small_k"]);
    const phiattn::TensorPowerFeatures<TestType> map(power, 2, n);
    REQUIRE(map.feature_dimension() == static_cast<Index>(json["alphas_d2"].size()));

    // A product of n factors, divided by s^n and multiplied by exp(n log s).
    const double norm = std::max(q.rowwise().norm().maxCoeff(), k.rowwise().norm().maxCoeff());
    const double error = rounding<TestType>(3 * n, static_cast<double>(n) * std::log(norm));
    const Matrix<TestType> phi_q = map.query_features(Matrix<TestType>(q.cast<TestType>()));
    const Matrix<TestType> phi_k = map.key_features(Matrix<TestType>(k.cast<TestType>()));
    CHECK(relative_distance(phi_q.template cast<double>(), matrix(json["small_phi_q"])) <= error);
    CHECK(relative_distance(phi_k.template cast<double>(), matrix(json["small_phi_k"])) <= error);

    // Against sqrt(w_|alpha| / alpha!) x^alpha with alpha as listed.
    for (Index i = 0; i < map.feature_dimension(); ++i) {
      const auto alpha = json["alphas_d2"][static_cast<std::size_t>(i)].get<std::vector<int>>();
      double weight = 1 / (std::tgamma(alpha[0] + 1) * std::tgamma(alpha[1] + 1));
      if (power == phiattn::TensorPower::exponential_limit) {
        for (int m = 0; m < alpha[0] + alpha[1]; ++m)
          weight *= static_cast<double>(n - m) / static_cast<double>(n);
      }
      for (Index t = 0; t < q.rows(); ++t) {
        const double monomial = std::sqrt(weight) * std::pow(q(t, 0), alpha[0]) * std::pow(q(t, 1), alpha[1]);
        CHECK(std::abs(static_cast<double>(phi_q(t, i)) - monomial) <= error * std::abs(monomial));
      }
    }
  }
}

TEMPLATE_TEST_CASE("tensor powers: both layouts and the explicit kernel give the stored kernel", "[golden]",
                   float, double) {
  for (const auto& [file, power] : kFamilies) {
    CAPTURE(file);
    const nlohmann::json json = load(file);
    const Index n = json["n"].get<Index>();
    const Matrix<TestType> q = matrix(json["small_q"]).cast<TestType>(),
                           k = matrix(json["small_k"]).cast<TestType>();
    const Matrix<double> stored = matrix(json["small_kernel"]);
    const Matrix<double> terms = absolute_terms(power, n, matrix(json["small_q"]), matrix(json["small_k"]));
    const double error = static_cast<double>(n) * rounding<TestType>(20, 0);

    Matrix<TestType> tile(q.rows(), k.rows());
    Vector<TestType> log_scale(q.rows());
    kernel_of<TestType>(power, n).similarity(q, k, tile, log_scale);
    for (Index t = 0; t < q.rows(); ++t) tile.row(t) *= std::exp(log_scale(t));
    CHECK(distance(tile.template cast<double>(), stored, terms) <= error);

    for (const auto layout : {phiattn::TensorLayout::symmetric, phiattn::TensorLayout::full}) {
      const phiattn::TensorPowerFeatures<TestType> map(power, 2, n, layout);
      const Matrix<double> phi_q = map.query_features(q).template cast<double>();
      const Matrix<double> phi_k = map.key_features(k).template cast<double>();
      CHECK(distance(products(phi_q, phi_k), stored, terms) <= error);
    }
  }
}

TEMPLATE_TEST_CASE("tensor powers: attention equals the stored one by every way to run it", "[golden]", float,
                   double) {
  for (const auto& [file, power] : kFamilies) {
    CAPTURE(file);
    const nlohmann::json json = load(file);
    const Index n = json["n"].get<Index>();
    const Case given(json);
    const Matrix<double> terms = absolute_terms(power, n, given.scaled(given.q), given.scaled(given.k));
    const double error = static_cast<double>(n) * rounding<TestType>(given.q.cols() + given.k.rows() + 20, 0);

    check_attention(kernel_of<TestType>(power, n), given, json, terms, error);
    for (const auto layout : {phiattn::TensorLayout::symmetric, phiattn::TensorLayout::full}) {
      check_attention(phiattn::TensorPowerFeatures<TestType>(power, given.q.cols(), n, layout), given, json,
                      terms, error);
    }
  }
}
