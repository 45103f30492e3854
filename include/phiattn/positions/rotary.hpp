#pragma once

// Positions that turn queries and keys.

#include <phiattn/core/check.hpp>
#include <phiattn/core/heads.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/output.hpp>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace phiattn::inline PHIATTN_ABI {

/// Which coordinates are turned together: 2i and 2i + 1 (RoFormer, Llama's own), or i and i + dimensions/2 (GPT-NeoX,
/// Hugging Face's Llama).
enum class RotaryPairs { interleaved, halves };

struct RotaryOptions {
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::interleaved;
  /// How many coordinates are turned, the first ones; even. Default: all.
  std::optional<Index> dimensions = std::nullopt;
  /// One for each pair, in place of base^(-2i/dimensions).
  std::vector<double> frequencies = {};
};

namespace detail {

/// float is what half and bfloat16 are computed in.
template <class T>
using ComputedIn = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The turn at one position.
template <ComputeScalar S>
class Rotation {
 public:
  Rotation(Index d, const RotaryOptions& options) : halves_(options.pairs == RotaryPairs::halves) {
    const Index dimensions = options.dimensions.value_or(d);
    if (dimensions % 2 != 0 || dimensions < 0 || dimensions > d) {
      fail_argument("dimensions of rotary: got " + std::to_string(dimensions) +
                    ", expected an even number up to " + std::to_string(d) + " (columns of x)");
    }
    frequencies_ = options.frequencies;
    if (frequencies_.empty()) {
      checked_positive("base of rotary", options.base);
      for (Index i = 0; i < dimensions / 2; ++i) {
        frequencies_.push_back(
            std::pow(options.base, -2 * static_cast<double>(i) / static_cast<double>(dimensions)));
      }
    }
    check_equal("number of frequencies of rotary", static_cast<Index>(frequencies_.size()),
                "pairs of dimensions", dimensions / 2);
    for (const double frequency : frequencies_) {
      if (!std::isfinite(frequency)) {
        fail_argument("frequencies of rotary: got " + number(frequency) + ", expected finite numbers");
      }
    }
    cosines_.resize(frequencies_.size());
    sines_.resize(frequencies_.size());
  }

  /// Angles are exact to some 1e-16 of themselves.
  void move_to(Index position) {
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies_[i];
      cosines_[i] = static_cast<S>(std::cos(angle));
      sines_[i] = static_cast<S>(std::sin(angle));
    }
  }

  /// x (d) is turned.
  void turn(S* x) const {
    const std::size_t n = cosines_.size(), step = halves_ ? 1 : 2, apart = halves_ ? n : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const S a = x[i * step], b = x[i * step + apart];
      x[i * step] = a * cosines_[i] - b * sines_[i];
      x[i * step + apart] = b * cosines_[i] + a * sines_[i];
    }
  }

 private:
  bool halves_;
  std::vector<double> frequencies_;
  std::vector<S> cosines_, sines_;
};

inline bool same_place(const Extent& a, const Extent& b) {
  return a.data == b.data && a.element == b.element && a.row_stride == b.row_stride &&
         a.col_stride == b.col_stride;
}

/// Row t of x, turned for position first + t, becomes row t of out.
template <ComputeScalar S>
void rotate(const Input<S>& x, Index first, const Output<S>& out, const RotaryOptions& options) {
  Rotation<S> rotation(x.cols(), options);
  check_equal("rows of out", out.rows(), "rows of x", x.rows());
  check_equal("columns of out", out.cols(), "columns of x", x.cols());
  if (!same_place(x.extent(), out.extent())) out.check_apart_from("x", x);
  out.fill_apart([&](const Output<S>& apart) {
    RowVector<S> row(x.cols());
    for (Index t = 0; t < x.rows(); ++t) {
      const Rows<S> token(row.data(), 1, row.size());
      x.load(t, S(1), token);
      rotation.move_to(first + t);
      rotation.turn(row.data());
      apart.store(t, token);
    }
    return 0;
  });
}

}  // namespace detail

/// Rotary position embedding (Su et al. 2021, eq. 34): pair i of token t, at position p = first_position + t, becomes
///
///     (x cos(p f_i) - y sin(p f_i), y cos(p f_i) + x sin(p f_i)),   f_i = base^(-2i/dimensions)
///
/// so that q.k of turned queries and keys depends on the difference of their positions alone. Before any similarity or memory.
/// @param x  (n, d), float, double, half or bfloat16
/// @return (n, d), float or double
/// @throws std::invalid_argument  on options out of range
/// Cost: n d / 2 sines and cosines and 3 n d flops.
template <class D>
Matrix<detail::ComputedIn<typename D::Scalar>> rotary(const Eigen::DenseBase<D>& x, Index first_position,
                                                      const RotaryOptions& options = {}) {
  using S = detail::ComputedIn<typename D::Scalar>;
  Matrix<S> out(x.rows(), x.cols());
  detail::rotate<S>(x, first_position, out, options);
  return out;
}

/// The same into any writable expression, which may be x itself.
template <class D, class Out>
requires detail::Writable<Out>
void rotary(const Eigen::DenseBase<D>& x, Index first_position, Out&& out,
            const RotaryOptions& options = {}) {
  detail::rotate<detail::ComputedIn<typename D::Scalar>>(x, first_position, out, options);
}

/// The same of all heads, whose tokens t are at position first_position + t; sines and cosines are taken once a token.
template <class T, class U>
void rotary(const Heads<T>& x, Index first_position, const Heads<U>& out, const RotaryOptions& options = {}) {
  using S = detail::ComputedIn<std::remove_const_t<T>>;
  const HeadsInput<S> in(x);
  const HeadsOutput<S> result(out);
  detail::Rotation<S> rotation(x.shape().dim, options);
  if (!(x.shape() == out.shape())) detail::fail_argument("shape of out: it is not that of x");
  result.check_places();
  const auto same = [](const HeadsStrides& a, const HeadsStrides& b) {
    return a.batch == b.batch && a.head == b.head && a.token == b.token && a.dim == b.dim;
  };
  const bool in_place = static_cast<const void*>(x.data()) == static_cast<const void*>(out.data()) &&
                        sizeof(T) == sizeof(U) && same(x.strides(), out.strides());
  if (!in_place) result.check_apart_from("x", in);
  RowVector<S> row(x.shape().dim);
  const Rows<S> token(row.data(), 1, row.size());
  for (Index t = 0; t < x.shape().tokens; ++t) {
    rotation.move_to(first_position + t);
    for (Index b = 0; b < x.shape().batch; ++b) {
      for (Index h = 0; h < x.shape().heads; ++h) {
        in.head(b, h).load(t, S(1), token);
        rotation.turn(row.data());
        result.group(b, h, 1).store(t, token);
      }
    }
  }
}

/// In place.
template <class T>
requires(!std::is_const_v<T>) void rotary(const Heads<T>& x, Index first_position,
                                          const RotaryOptions& options = {}) {
  rotary(x, first_position, x, options);
}

}  // namespace phiattn::inline PHIATTN_ABI
