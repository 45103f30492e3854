#pragma once

// Polynomials sketched by hashing tensor powers.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/product.hpp>
#include <phiattn/core/random.hpp>
#include <phiattn/feature_maps/sketched_polynomial.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// A count sketch adds every coordinate, with its sign, to its bucket: (C x)_b = sum_{i: h_i = b} sigma_i x_i.
struct CountSketch {
  std::vector<Index> buckets;  // h_i
  std::vector<int> signs;      // sigma_i = +-1
};

namespace detail {

/// The sketch of x (x) ... (x) x, p times, in m buckets: the circular convolution of p count sketches of x, which in the
/// Fourier domain is a product,
///
///     F(sketch) = prod_{l <= p} F C_l x
///
/// and there it stays: the transform keeps dot products. A row of F C_l is a row of signed roots of unity. For
/// real x half of the m complex numbers are the conjugates of the others; as m real ones,
///
///     [re_0, ..., re_{m/2}, im_1, ..., im_{(m-1)/2}] / sqrt(m),   those that have a conjugate times sqrt(2)
template <class S>
class TensorSketch {
 public:
  TensorSketch(Index d, Index p, Index m, const Philox& random, std::uint64_t& next) {
    for (Index l = 0; l < p; ++l) {
      CountSketch count;
      for (Index i = 0; i < d; ++i) {
        count.buckets.push_back(static_cast<Index>(random.uniform(next++) * static_cast<double>(m)));
        count.signs.push_back(random.uniform(next++) < 0.5 ? -1 : 1);
      }
      transformed_.push_back(transformed(count, m));
      counts_.push_back(std::move(count));
    }
  }

  Index cols() const { return transformed_.front().cols(); }
  const std::vector<CountSketch>& counts() const { return counts_; }

  /// out (n, m) <- the sketches of tokens x (n, d); scratch is like out.
  void apply(const ConstMatrixRef<S>& x, MatrixRef<S> out, MatrixRef<S> scratch) const {
    multiply<S>(x, transformed_[0], out);
    for (std::size_t l = 1; l < transformed_.size(); ++l) {
      multiply<S>(x, transformed_[l], scratch);
      for (Index t = 0; t < x.rows(); ++t) multiply_complex(out.row(t).data(), scratch.row(t).data());
    }
    const S unit = 1 / std::sqrt(static_cast<S>(cols()));
    out *= unit;
    out.middleCols(1, imaginary()) *= std::numbers::sqrt2_v<S>;
    out.rightCols(imaginary()) *= std::numbers::sqrt2_v<S>;
  }

 private:
  Index real() const { return cols() / 2 + 1; }
  Index imaginary() const { return (cols() - 1) / 2; }

  static Matrix<S> transformed(const CountSketch& count, Index m) {
    const auto d = static_cast<Index>(count.buckets.size());
    Matrix<S> result(d, m);
    for (Index i = 0; i < d; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto turned = [&](Index f) {
        return -2 * std::numbers::pi * static_cast<double>(f * count.buckets[at] % m) /
               static_cast<double>(m);
      };
      for (Index f = 0; f <= m / 2; ++f) result(i, f) = static_cast<S>(count.signs[at] * std::cos(turned(f)));
      for (Index f = 1; f <= (m - 1) / 2; ++f) {
        result(i, m / 2 + f) = static_cast<S>(count.signs[at] * std::sin(turned(f)));
      }
    }
    return result;
  }

  /// a <- a b, complex numbers in the layout above
  void multiply_complex(S* a, const S* b) const {
    S* a_im = a + real() - 1;
    const S* b_im = b + real() - 1;
    a[0] *= b[0];
    for (Index f = 1; f <= imaginary(); ++f) {
      const S re = a[f] * b[f] - a_im[f] * b_im[f];
      a_im[f] = a[f] * b_im[f] + a_im[f] * b[f];
      a[f] = re;
    }
    if (cols() % 2 == 0) a[real() - 1] *= b[real() - 1];
  }

  std::vector<CountSketch> counts_;
  std::vector<Matrix<S>> transformed_;
};

}  // namespace detail

/// Tensor sketches (Pham & Pagh 2013) of the Taylor polynomial or of (1 + q . k / n)^n.
///
/// The m - 1 - d features beside the exact ones of SketchedPolynomial are dealt out to the degrees 2 ... n in equal parts,
/// lower ones first. Degree j has sqrt(c_j) times the sketch of the j-th tensor power, independent of other degrees':
/// E[phi(q) . phi(k)] = sum_j c_j (q . k)^j.
///
/// Variance of degree j in m_j buckets, with a = (q . k)^2, b = |q|^2 |k|^2 - sum_i q_i^2 k_i^2, e = a - sum_i q_i^2 k_i^2,
/// and g = 2 for even m_j, 1 for odd:
///
///     c_j^2 / m_j ((a+b)^j + (a+e)^j - 2 a^j + g/m_j ((a+b+e)^j - (a+b)^j - (a+e)^j + a^j))
///
/// (each coordinate's signs pair up the four factors of a second moment in one of three ways: key with query, or query
/// with query straight or crossed; buckets then agree by themselves, with probability 1/m_j, or with g/m_j^2). It is
/// below (2 + 3^j) |q|^{2j} |k|^{2j} / m_j, the bound of Avron, Nguyen & Woodruff (2014).
///
/// The noise of degree j is about c_j (|q| |k|)^j / sqrt(m_j): a degree is worth its features where that is less than
/// what leaving the degree out would cost, c_j |q . k|^j. With m of a few d that often means n = 2, which is then a
/// better map than positive random features of the same m; it works for |q| |k| up to about 2, and fails beyond.
/// @param d  dimension of q and k      @param n  degree, at least 2      @param m  features, at least d + n
/// @throws std::invalid_argument  if d, n or m is less
/// Cost: 2 n_tokens d sum_j j m_j flops, about n_tokens d m n; as much memory as d n m / 2 numbers. The Fourier transform
/// of a count sketch is taken as a dense product: for d up to some 100 that is faster than d additions and an FFT.
template <detail::ComputeScalar S>
class TensorSketchFeatures : public SketchedPolynomial<TensorSketchFeatures<S>, S> {
 public:
  TensorSketchFeatures(TensorPower family, Index d, Index n, Index m, std::uint64_t seed = 0)
      : SketchedPolynomial<TensorSketchFeatures, S>(family, d, n, m) {
    const Philox random(seed);
    std::uint64_t next = 0;
    auto sketches = std::make_shared<std::vector<detail::TensorSketch<S>>>();
    const Index features = this->sketch_dimension();
    for (Index j = 2; j <= n; ++j) {
      const Index rest = features % (n - 1);
      sketches->emplace_back(d, j, features / (n - 1) + (j - 2 < rest ? 1 : 0), random, next);
    }
    sketches_ = std::move(sketches);
  }

  /// The j count sketches of degree j = 2 ... n.
  const std::vector<CountSketch>& count_sketches(Index j) const { return of_degree(j).counts(); }

  /// m_j
  Index buckets(Index j) const { return of_degree(j).cols(); }

 private:
  friend class SketchedPolynomial<TensorSketchFeatures, S>;

  const detail::TensorSketch<S>& of_degree(Index j) const {
    return (*sketches_)[static_cast<std::size_t>(j - 2)];
  }

  Index scratch_columns() const { return buckets(2); }

  void sketch(const ConstMatrixRef<S>& y, const ConstMatrixRef<S>& powers, MatrixRef<S> features,
              MatrixRef<S> scratch) const {
    Index start = 0;
    for (Index j = 2; j <= this->degree(); ++j) {
      const Index m = buckets(j);
      auto out = features.middleCols(start, m);
      of_degree(j).apply(y, out, scratch.leftCols(m));
      for (Index t = 0; t < y.rows(); ++t) out.row(t) *= this->root_coefficient(j) * powers(t, j);
      start += m;
    }
  }

  std::shared_ptr<const std::vector<detail::TensorSketch<S>>> sketches_;
};

}  // namespace phiattn::inline PHIATTN_ABI
