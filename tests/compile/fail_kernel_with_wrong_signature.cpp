// expect: the type says that it is a SignedKernel, but does not model that concept
#include <phiattn/attention/attention.hpp>

using namespace phiattn;

/// It says what it is, and gives one pair where a tile is asked for.
struct OnePairKernel {
  using Scalar = float;
  using Kind = SignedKernelTag;
  static double default_scale(Index) { return 1; }
  float similarity(const RowVector<float>& q, const RowVector<float>& k) const { return q.dot(k); }
};

int main() {
  const Matrix<float> x = Matrix<float>::Random(4, 3);
  attention(OnePairKernel(), x, x, x);
}
