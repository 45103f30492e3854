// How to add a kernel: the README's, held to its definition.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>

#include "support/catch.hpp"

namespace pa = phiattn;

namespace {

struct CauchyKernel {  // sim(q, k) = 1 / (1 + |q - k|^2)
  using Scalar = float;
  using Kind = pa::LogKernelTag;  // hands over logarithms
  static double default_scale(pa::Index) { return 1; }
  void similarity(const pa::ConstMatrixRef<float>& q, const pa::ConstMatrixRef<float>& k,
                  pa::MatrixRef<float> tile) const {
    for (pa::Index t = 0; t < q.rows(); ++t)
      tile.row(t) = -(k.rowwise() - q.row(t)).rowwise().squaredNorm().transpose().array().log1p();
  }
};
static_assert(pa::LogKernel<CauchyKernel>);

}  // namespace

TEST_CASE("a kernel of one's own takes a class with one verb") {
  const pa::Matrix<float> x = pa::Matrix<float>::Random(50, 6);
  pa::Matrix<float> sim(50, 50);
  for (pa::Index i = 0; i < 50; ++i) {
    for (pa::Index j = 0; j < 50; ++j) sim(i, j) = 1 / (1 + (x.row(i) - x.row(j)).squaredNorm());
  }
  const pa::Matrix<float> due = sim.rowwise().sum().cwiseInverse().asDiagonal() * (sim * x);
  CHECK(pa::maximal_error(pa::attention(CauchyKernel(), x, x, x), due) < 1e-5);
}
