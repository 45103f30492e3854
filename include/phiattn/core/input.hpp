#pragma once

// What comes in: any Eigen expression, behind one type per scalar. Next: core/output.hpp.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/prefetch.hpp>

#include <algorithm>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

namespace phiattn {

namespace detail {

template <class T>
concept StorageScalar = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Eigen::half> ||
    std::same_as<T, Eigen::bfloat16>;


template <class From, class To>
inline constexpr bool widens_to = std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits;

/// Eigen 3.4 flags indexed views of fixed increments as direct, although they have no data().
template <class D>
concept DirectAccess = (int(D::Flags) & int(Eigen::DirectAccessBit)) != 0 && requires(const D& x) {
  x.data();
};

/// The bytes a strided view spans, with its layout, to tell whether two views share an element.
struct Extent {
  const char* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index row_stride = 0;  // bytes
  Index col_stride = 0;  // bytes
  Index element = 0;     // bytes

  template <class Derived>
  static Extent of(const Derived& x) {
    constexpr auto kSize = static_cast<Index>(sizeof(typename Derived::Scalar));
    return {reinterpret_cast<const char*>(x.data()),
            x.rows(),
            x.cols(),
            x.rowStride() * kSize,
            x.colStride() * kSize,
            kSize};
  }

  /// Rows [first, first + count) where a row lies in one piece.
  Span span(Index first, Index count) const {
    if (col_stride != element) return {};
    return Span::of(data + first * row_stride, count, cols * element, row_stride);
  }
};

}  // namespace detail

/// A read-only (n, d) argument of the library: any Eigen expression of float, double, half or bfloat16 that converts
/// to S without narrowing. An expression with direct access (matrix, map, block; any stride or storage order) is
/// referred to and later loaded a chunk at a time; any other is evaluated once, here. Lives as long as the call it
/// is made for.
template <detail::ComputeScalar S>
class Input {
 public:
  template <class Derived>
  Input(const Eigen::DenseBase<Derived>& x)
      : rows_(x.rows()), cols_(x.cols()) {  // implicit: it is how arguments come in
    using T = typename Derived::Scalar;
    static_assert(detail::StorageScalar<T>,
                  "phiattn: an input holds float, double, Eigen::half or Eigen::bfloat16");
    static_assert(!detail::StorageScalar<T> || detail::widens_to<T, S>,
                  "phiattn: an input would narrow; cast it, or use the similarity in double");
    if constexpr (detail::DirectAccess<Derived>) {
      refer(x.derived());
    } else {
      evaluated_ = x.derived().template cast<S>();
      refer(evaluated_);
    }
  }

  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }

  /// Rows [first, first + count) as an input of their own; refers to this one.
  Input slice(Index first, Index count) const {
    return Input(static_cast<const char*>(data_) + first * extent_.row_stride, count, cols_, extent_, load_);
  }

  /// A vector that comes as a row or a column, as a column.
  Input as_column() const {
    if (cols_ == 1) return slice(0, rows_);
    detail::Extent transposed = extent_;
    std::swap(transposed.row_stride, transposed.col_stride);
    return Input(data_, cols_, rows_, transposed, load_);
  }

  /// out <- factor * rows [first, first + out.rows()), in the compute type and row-major.
  void load(Index first, S factor, MatrixRef<S> out) const {
    load_(static_cast<const char*>(data_) + first * extent_.row_stride, extent_, factor, out);
  }

  /// use(factor * rows [first, first + chunk.rows())): in place if they lie as a chunk would, else loaded into `chunk`.
  template <class Use>
  void with_rows(Index first, S factor, MatrixRef<S> chunk, const Use& use) const {
    // To Eigen, a stride of 0 is that of a dense matrix.
    const bool in_rows = extent_.col_stride == extent_.element && extent_.row_stride != 0;
    if (load_ == &load_as<S> && in_rows && factor == S(1)) {
      use(Eigen::Map<const Matrix<S>, 0, Eigen::OuterStride<>>(
          reinterpret_cast<const S*>(static_cast<const char*>(data_) + first * extent_.row_stride),
          chunk.rows(), cols_, Eigen::OuterStride<>(extent_.row_stride / extent_.element)));
    } else {
      load(first, factor, chunk);
      use(chunk);
    }
  }

  const detail::Extent& extent() const { return extent_; }

  /// Rows [first, first + count), as far as there are so many, for a Prefetch.
  detail::Span span(Index first, Index count) const {
    return extent_.span(first, std::min(count, rows_ - first));
  }

 private:
  using Load = void (*)(const void* data, const detail::Extent&, S factor, MatrixRef<S> out);

  Input(const void* data, Index rows, Index cols, const detail::Extent& extent, Load loader)
      : data_(data), rows_(rows), cols_(cols), extent_(extent), load_(loader) {}

  template <class Derived>
  void refer(const Derived& x) {
    data_ = x.data();
    extent_ = detail::Extent::of(x);
    load_ = &load_as<typename Derived::Scalar>;
  }

  template <class T>
  static void load_as(const void* data, const detail::Extent& extent, S factor, MatrixRef<S> out) {
    const auto* x = static_cast<const T*>(data);
    const Index row_stride = extent.row_stride / extent.element;
    const Index col_stride = extent.col_stride / extent.element;
    if (col_stride == 1 && row_stride == out.cols() && out.outerStride() == out.cols()) {
      const Eigen::Map<const RowVector<T>> all(x, out.size());
      Eigen::Map<RowVector<S>>(out.data(), out.size()) = all.template cast<S>() * factor;
    } else if (col_stride == 1) {
      for (Index t = 0; t < out.rows(); ++t) {
        const Eigen::Map<const RowVector<T>> row(x + t * row_stride, out.cols());
        out.row(t) = row.template cast<S>() * factor;
      }
    } else {
      using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
      const Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>, 0, Strides> columns(
          x, out.rows(), out.cols(), Strides(col_stride, row_stride));
      out = columns.template cast<S>() * factor;
    }
  }

  Matrix<S> evaluated_;
  const void* data_ = nullptr;
  Index rows_;
  Index cols_;
  detail::Extent extent_;
  Load load_ = nullptr;
};

}  // namespace phiattn
