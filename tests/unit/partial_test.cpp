// Partial results: what combines are undivided sums, so that no part is lost whose normaliser vanishes.
#include <phiattn/attention/attention.hpp>
#include <phiattn/feature_maps/elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace phiattn;

TEMPLATE_TEST_CASE("a part whose normaliser is 0 counts in the whole, in any order", "[partial]", float,
                   double) {
  using S = TestType;
  const Matrix<S> q{{1, 2, 0, -1}};
  const Matrix<S> k{{-1, 0, 3, 1}, {2, 1, 0, 0}, {0, 1, 1, 0}, {1, 1, -2, 5}};
  const Matrix<S> v{{1, 0}, {0, 1}, {2, 2}, {3, -1}};
  const auto relu = signed_elementwise_features<S>(4, [](S x) { return std::max(x, S(0)); });
  // relu(q) . relu(k_j): 0, 4, 2, 3; the first key alone has a normaliser of 0.
  std::vector<Partial<S>> parts;
  for (Index j = 0; j < 4; ++j) {
    LinearState state(relu, 2);
    state.append(k.row(j), v.row(j));
    parts.push_back(state.read_partial(q));
  }
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    CAPTURE(order);
    const auto left =
        combine(combine(combine(parts[order[0]], parts[order[1]]), parts[order[2]]), parts[order[3]]);
    const auto pairs =
        combine(combine(parts[order[0]], parts[order[1]]), combine(parts[order[2]], parts[order[3]]));
    for (const auto& whole : {left, pairs}) {
      CHECK(whole.out(0, 0) == Approx(13.0 / 9));
      CHECK(whole.out(0, 1) == Approx(5.0 / 9));
      CHECK(whole.log_normaliser(0) == Approx(std::log(9.0)));
      CHECK(whole.sign(0) == 1);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEMPLATE_TEST_CASE("parts that cancel leave what is left", "[partial]", float, double) {
  using S = TestType;
  const auto linear = signed_elementwise_features<S>(1, [](S x) { return x; });
  const Matrix<S> q{{1}}, v{{5, 1}};
  const auto part = [&](S k) {
    LinearState state(linear, 2);
    state.append(Matrix<S>::Constant(1, 1, k), v);
    return state.read_partial(q);
  };
  // Normalisers 2, -2 and 3: the first two leave nothing, and yet there are keys.
  const auto none = combine(part(2), part(-2));
  CHECK(std::isinf(none.log_normaliser(0)));
  const auto all = combine(none, part(3));
  CHECK(all.out.isApprox(v));
  CHECK(all.log_normaliser(0) == Approx(std::log(3.0)));
}

TEMPLATE_TEST_CASE("parts whose normalisers cancel leave their values behind, on either side", "[partial]",
                   float, double) {
  using S = TestType;
  const auto linear = signed_elementwise_features<S>(1, [](S x) { return x; });
  const auto part = [&](S k, const Matrix<S>& v) {
    LinearState state(linear, 2);
    state.append(Matrix<S>::Constant(1, 1, k), v);
    return state.read_partial(Matrix<S>{{1}});
  };
  const auto none =
      combine(part(2, Matrix<S>{{5, 1}}), part(-2, Matrix<S>{{1, 1}}));  // sums (8, 0), normaliser 0
  const auto third = part(3, Matrix<S>{{5, 1}});
  for (const auto& all : {combine(none, third), combine(third, none)}) {
    CHECK(all.out.isApprox(Matrix<S>{{S(23) / 3, 1}}));
    CHECK(all.log_normaliser(0) == Approx(std::log(3.0)));
  }
}

TEMPLATE_TEST_CASE("a part that weighs next to nothing leaves the other as it is, on either side",
                   "[partial]", float, double) {
  using S = TestType;
  const Partial<S> light{Matrix<S>{{1, 2}}, Vector<S>{{-1e4}}, Vector<S>{{1}}};
  const Partial<S> heavy{Matrix<S>{{4, 8}}, Vector<S>{{1e4}}, Vector<S>{{1}}};
  for (const auto& both : {combine(light, heavy), combine(heavy, light)}) {
    CHECK(both.out == heavy.out);
    CHECK(both.log_normaliser == heavy.log_normaliser);
  }
}

TEST_CASE("a partial result of three parts combines as it says") {
  const Partial<double> a{Matrix<double>{{1, 2}}, Vector<double>{{0}}, Vector<double>{{1}}};
  const Partial<double> b{Matrix<double>{{4, 8}}, Vector<double>{{std::log(2.0)}}, Vector<double>{{1}}};
  CHECK(combine(a, b).out.isApprox(Matrix<double>{{3, 6}}));
  CHECK(combine(a, Partial<double>::empty(1, 2)).out == a.out);
  const Partial<double> negative{Matrix<double>{{4, 8}}, Vector<double>{{std::log(2.0)}},
                                 Vector<double>{{-1}}};
  const auto both = combine(a, negative);  // (1 a - 2 b) / (1 - 2)
  CHECK(both.out.isApprox(Matrix<double>{{7, 14}}));
  CHECK(both.sign(0) == -1);
}
