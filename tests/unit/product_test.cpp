// The dense products against loops in long double, over shapes that meet every tile, packing and remainder.
#include <phiattn/core/product.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"

using namespace phiattn;

namespace {

constexpr Index kAll = detail::kNoDiagonal;

/// c + a b, where a(i, l) counts for l <= i + diagonal.
template <class S>
Matrix<S> by_loops(const Matrix<S>& a, const Matrix<S>& b, const Matrix<S>& c, Index diagonal = kAll) {
  Matrix<S> out(a.rows(), b.cols());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.cols(); ++j) {
      long double sum = c(i, j);
      for (Index l = 0; l < a.cols() && l <= i + diagonal; ++l) {
        sum += static_cast<long double>(a(i, l)) * static_cast<long double>(b(l, j));
      }
      out(i, j) = static_cast<S>(sum);
    }
  }
  return out;
}

/// Entries up to 1, sums of k products: rounding errors stay below (k + 2) eps |c + a b| <= (k + 2)(k + 1) eps.
template <class S>
S bound(Index k) {
  return static_cast<S>((k + 2) * (k + 1)) * std::numeric_limits<S>::epsilon();
}

template <class S>
void require_close(const Matrix<S>& x, const Matrix<S>& y, Index k) {
  REQUIRE((x - y).cwiseAbs().maxCoeff() <= bound<S>(k));
}

template <class Check>
void for_shapes(const Check& check) {
  std::srand(3);  // Eigen's Random
  for (const Index n : {1, 2, 5, 8, 21, 64}) {
    for (const Index k : {0, 1, 7, 16, 33, 300}) {
      for (const Index m : {1, 7, 16, 33, 72}) {
        CAPTURE(n, k, m);
        check(n, k, m);
      }
    }
  }
  check(40, 20, 1100);  // rows far apart
}

}  // namespace

TEMPLATE_TEST_CASE("products of row-major blocks, with either operand transposed, are sums of products",
                   "[product]", float, double) {
  using M = Matrix<TestType>;
  for_shapes([](Index n, Index k, Index m) {
    const M a = M::Random(n, k), b = M::Random(k, m), c = M::Random(n, m);
    const M product = by_loops<TestType>(a, b, M::Zero(n, m)), sum = by_loops<TestType>(a, b, c);
    const M a_transposed = a.transpose(), b_transposed = b.transpose();
    M out = c;
    detail::multiply<TestType>(a, b, out);
    require_close(out, product, k);
    detail::multiply_transposed<TestType>(a, b_transposed, out);
    require_close(out, product, k);
    out = c;
    detail::multiply_add<TestType>(a, b, out);
    require_close(out, sum, k);
    out = c;
    detail::transposed_multiply_add<TestType>(a_transposed, b, out);
    require_close(out, sum, k);
  });
}

TEMPLATE_TEST_CASE("a product takes blocks of larger matrices and writes nothing beside them", "[product]",
                   float, double) {
  using M = Matrix<TestType>;
  for_shapes([](Index n, Index k, Index m) {
    const M a = M::Random(n + 1, k + 3), b = M::Random(k + 2, m + 5);
    M out = M::Constant(n + 2, m + 4, 7);
    detail::multiply<TestType>(a.block(1, 2, n, k), b.block(2, 3, k, m), out.block(1, 2, n, m));
    require_close<TestType>(out.block(1, 2, n, m),
                            by_loops<TestType>(a.block(1, 2, n, k), b.block(2, 3, k, m), M::Zero(n, m)), k);
    out.block(1, 2, n, m).setConstant(7);
    REQUIRE(out == M::Constant(n + 2, m + 4, 7));
  });
}

TEMPLATE_TEST_CASE("triangular products agree where they are defined", "[product]", float, double) {
  using M = Matrix<TestType>;
  for (const Index diagonal : {-9, 0, 3, 40}) {
    CAPTURE(diagonal);
    for_shapes([diagonal](Index n, Index k, Index m) {
      const M a = M::Random(n, k), b = M::Random(k, m), c = M::Random(n, m);
      M lower = a;
      for (Index i = 0; i < n; ++i) {
        for (Index l = 0; l < k; ++l) lower(i, l) = l <= i + diagonal ? a(i, l) : TestType(0);
      }
      M out = c;
      detail::multiply_add<TestType>(lower, b, out, diagonal);
      require_close(out, by_loops<TestType>(a, b, c, diagonal), k);

      const M b_transposed = b.transpose();
      M product = by_loops<TestType>(a, b, M::Zero(n, m));
      detail::multiply_transposed<TestType>(a, b_transposed, out, diagonal);
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < m; ++j) {
          if (j > i + diagonal) out(i, j) = product(i, j);
        }
      }
      require_close(out, product, k);
    });
  }
}
