// The floating-point environment of a caller: it changes nothing, and nothing changes it.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elu.hpp>
#include <phiattn/memories/cluster_memory.hpp>
#include <phiattn/memories/window.hpp>

#include <cfenv>
#include <limits>

#include "support/catch.hpp"
#include "support/problem.hpp"

using namespace phiattn;
using laws::gaussian;
using laws::kSeed;

namespace {

constexpr Index kN = 70;
constexpr Index kD = 4;

/// Every way in: a kernel, a map, and a memory with clusters that stay empty.
Matrix<double> results() {
  const Matrix<double> q = gaussian<double>(kN, kD, kSeed), k = gaussian<double>(kN, kD, kSeed + 1),
                       v = gaussian<double>(kN, kD, kSeed + 2);
  const auto plain = Reparametrisation::shift(Vector<double>::Zero(kD), Vector<double>::Zero(kD));
  Matrix<double> centres = gaussian<double>(5, kD, kSeed + 3);
  centres.row(0).setConstant(100);
  const Windowed clusters(5, ClusterMemory<double>(centres, plain, kD, {.top = 1}));
  Matrix<double> all(6 * kN, kD);
  Index row = 0;
  for (const Causality causality : {Causality::none, Causality::causal}) {
    const AttentionOptions options{.causality = causality};
    all.middleRows(kN * row++, kN) = attention(ExponentialKernel<double>(), q, k, v, options);
    all.middleRows(kN * row++, kN) = attention(EluFeatures<double>(kD), q, k, v, options);
    all.middleRows(kN * row++, kN) = attention(clusters, q, k, v, options);
  }
  return all;
}

}  // namespace

TEST_CASE("a caller's rounding mode and traps change little, and are there again afterwards") {
  const Matrix<double> due = results();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    CAPTURE(kSeed, mode);
    std::fesetround(mode);
    const Matrix<double> out = results();
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    CHECK(after == mode);
    // Not the same bits: the test's own tokens are rounded by it too, and so is what is set up before.
    CHECK((out - due).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() < 1e-12);
  }
#if defined(__GLIBC__)
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  const Matrix<double> out = results();
  const int trapped = fedisableexcept(FE_ALL_EXCEPT);
  CHECK(out == due);
  CHECK(trapped == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
#endif
}

TEST_CASE("denormals are zero in the kernels, and the caller's own again afterwards") {
  const Matrix<float> q = gaussian<float>(kN, kD, kSeed), k = gaussian<float>(kN, kD, kSeed + 1);
  Matrix<float> v = gaussian<float>(kN, kD, kSeed + 2);
  v.col(1).setConstant(std::numeric_limits<float>::denorm_min() * 1000);
  Matrix<float> without = v;
  without.col(1).setZero();
  for (const Causality causality : {Causality::none, Causality::causal}) {
    CHECK(attention(EluFeatures<float>(kD), q, k, v, {.causality = causality}) ==
          attention(EluFeatures<float>(kD), q, k, without, {.causality = causality}));
  }
  const volatile float smallest = std::numeric_limits<float>::denorm_min();
  CHECK(smallest * 2 > smallest);
}
