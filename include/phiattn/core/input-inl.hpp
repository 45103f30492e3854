#pragma once

// How rows are loaded and stored: included by core/input.hpp where that is not compiled elsewhere.

#include <phiattn/core/input.hpp>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The numbers of an extent as Eigen's, whichever way its rows lie.
template <class T>
auto strided_matrix(const Extent& extent) {
  using M = std::conditional_t<std::is_const_v<T>, const Matrix<std::remove_const_t<T>>, Matrix<T>>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  return Eigen::Map<M, 0, Strides>(
      reinterpret_cast<T*>(const_cast<char*>(extent.data)), extent.rows, extent.cols,
      Strides(extent.row_stride / extent.element, extent.col_stride / extent.element));
}

template <class S, class T>
void load_rows(const Extent& extent, S factor, Rows<S> out) {
  const auto* x = reinterpret_cast<const T*>(extent.data);
  const Index row_stride = extent.row_stride / extent.element;
  const Index cols = out.cols;
  if (extent.col_stride != extent.element) {
    out.eigen() = strided_matrix<const T>(extent).template cast<S>() * factor;
    return;
  }
  // Rows that follow one another in both are one row.
  const bool in_one = row_stride == cols && out.stride == cols;
  const Index length = in_one ? out.rows * cols : cols;
  for (Index t = 0; t < (in_one ? Index{1} : out.rows); ++t) {
    const Eigen::Map<const RowVector<T>> row(further(x, t * row_stride), length);
    Eigen::Map<RowVector<S>>(out.row(t), length) = row.template cast<S>() * factor;
  }
}

template <class S, class T>
void store_rows(const Extent& extent, Rows<const S> x) {
  if (extent.col_stride != extent.element) {
    strided_matrix<T>(extent) = x.eigen().template cast<T>();
    return;
  }
  auto* out = reinterpret_cast<T*>(const_cast<char*>(extent.data));
  for (Index t = 0; t < x.rows; ++t) {
    const Eigen::Map<const RowVector<S>> row(x.row(t), x.cols);
    Eigen::Map<RowVector<T>>(further(out, t * (extent.row_stride / extent.element)), x.cols) =
        row.template cast<T>();
  }
}

}  // namespace phiattn::inline PHIATTN_ABI::detail
