// Impossible similarities, and matrices that do not fit them: which exception, and what it says.
#include <phiattn/analysis/error.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/feature_maps/positive_random.hpp>
#include <phiattn/feature_maps/tensor_power.hpp>
#include <phiattn/kernels/polynomial.hpp>
#include <phiattn/projection/projection.hpp>

#include "support/thrown.hpp"

using namespace phiattn;
using namespace thrown;

TEST_CASE("similarities refuse impossible parameters", "[errors]") {
  constexpr Index kHuge = Index{1} << 40;
  using Taylor = TaylorFeatures<float>;
  using Limit = ExponentialLimitFeatures<float>;
  const BadCall table[] = {
      {"omega of no rows",
       [] { PositiveRandomFeatures<float>{Matrix<float>(0, 4)}; },
       {"rows of omega", "0", "1"}},
      {"omega of no columns",
       [] { PositiveRandomFeatures<float>{Matrix<float>(4, 0)}; },
       {"columns of omega", "0", "1"}},
      {"sample m = 0", [] { sample_projection<float>(0, 4); }, {"rows of omega", "0", "1"}},
      {"sample d = 0", [] { sample_projection<float>(4, 0); }, {"columns of omega", "0", "1"}},
      {"sample m < 0", [] { sample_projection<float>(-1, 4); }, {"rows of omega", "-1", "1"}},
      {"elu d = 0", [] { EluFeatures<float>(0); }, {"dimension d", "EluFeatures", "0", "1"}},
      {"taylor d = 0", [] { Taylor(0, 2); }, {"dimension d", "0", "1"}},
      {"taylor n < 0", [] { Taylor(4, -1); }, {"degree n", "-1", "0"}},
      {"limit n = 0", [] { Limit(4, 0); }, {"degree n", "0", "1"}},
      {"taylor kernel", [] { PolynomialKernel<float>::taylor(-1); }, {"degree n", "taylor", "-1", "0"}},
      {"limit kernel",
       [] { PolynomialKernel<float>::exponential_limit(0); },
       {"degree n", "limit", "0", "1"}},
      {"10^9 features",
       [] { Taylor(1000, 3, TensorLayout::full); },
       {"d = 1000", "n = 3", "4194304"},
       "length_error"},
      {"10^9 features, symmetric", [] { Taylor(1817, 3); }, {"d = 1817", "n = 3", "4194304"}, "length_error"},
      {"10^9 features, limit",
       [] { Limit(999, 3, TensorLayout::full); },
       {"d = 999", "n = 3", "4194304"},
       "length_error"},
      {"no overflow", [] { Taylor(kHuge, 3); }, {"features", "4194304"}, "length_error"},
      {"no overflow, full",
       [] { Taylor(kHuge, 3, TensorLayout::full); },
       {"features", "4194304"},
       "length_error"},
      {"no overflow, limit",
       [] { Limit(kHuge, 3, TensorLayout::full); },
       {"features", "4194304"},
       "length_error"},
      {"no overflow, degree",
       [] { Taylor(2, kHuge, TensorLayout::full); },
       {"features", "4194304"},
       "length_error"},
  };
  for (const BadCall& bad : table) check_thrown(bad);
}

TEST_CASE("error measures refuse matrices of other shapes", "[errors]") {
  const Matrix<float> a = some(3, 2), b = some(4, 2), c = some(3, 5);
  check_thrown({"rows", [&] { relative_frobenius_error(b, a); }, {"rows", "4", "3"}});
  check_thrown({"columns", [&] { maximal_error(c, a); }, {"columns", "5", "2"}});
  check_thrown({"rows", [&] { row_l1_error(b, a); }, {"rows", "4", "3"}});
}

TEST_CASE("features of tokens of another dimension are refused, naming it", "[errors]") {
  const Matrix<float> x = some(5, 6);
  const PositiveRandomFeatures<float> favor(some(8, 4));
  check_thrown({"favor", [&] { favor.query_features(x); }, {"columns", "6", "4"}});
  check_thrown({"taylor", [&] { TaylorFeatures<float>(4, 2).key_features(x); }, {"columns", "6", "4"}});
  check_thrown({"elu", [&] { EluFeatures<float>(4).key_features(x); }, {"columns", "6", "4"}});
}
