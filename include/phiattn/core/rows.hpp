#pragma once

// Rows of numbers as they lie in memory.

#include <phiattn/core/matrix.hpp>

#include <concepts>
#include <type_traits>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

/// An Eigen expression whose rows lie in one piece each, so that it may be seen as Rows<T>.
template <class D, class T>
concept LiesInRows = std::same_as<typename D::Scalar, std::remove_const_t<T>> && requires(D& x) {
  { x.data() } -> std::convertible_to<T*>;
  x.outerStride();
} &&(bool(D::IsRowMajor) || int(D::ColsAtCompileTime) == 1) && (int(D::InnerStrideAtCompileTime) == 1);

}  // namespace detail

/// A view of (rows, cols) numbers, each row in one piece: what kernels, maps and memories hand to each other. Unlike
/// Eigen::Ref it is no expression, so that passing one on compiles to nothing and never copies.
template <class T>
struct Rows {
  using S = std::remove_const_t<T>;
  using Matrix = std::conditional_t<std::is_const_v<T>, const phiattn::Matrix<S>, phiattn::Matrix<S>>;
  using Map = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;

  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;  // from one row to the next

  Rows() = default;
  Rows(T* first, Index n, Index m, Index step) : data(first), rows(n), cols(m), stride(step) {}
  Rows(T* first, Index n, Index m) : Rows(first, n, m, m) {}

  // Implicit: it is how blocks of Eigen's come in. A column is its own rows.
  template <class D>
  requires detail::LiesInRows<std::remove_reference_t<D>, T> Rows(D&& x)
      : Rows(x.data(), x.rows(), x.cols(), std::remove_reference_t<D>::IsRowMajor ? x.outerStride() : 1) {}
  template <class U>
  requires(std::is_const_v<T>&& std::same_as<U, S>) Rows(const Rows<U>& x)
      : Rows(x.data, x.rows, x.cols, x.stride) {}

  T* row(Index i) const { return data + i * stride; }
  T& operator()(Index i, Index j) const { return data[i * stride + j]; }

  Rows middle(Index first, Index n) const { return {row(first), n, cols, stride}; }
  Rows top(Index n) const { return middle(0, n); }
  Rows left(Index m) const { return {data, rows, m, stride}; }

  /// The same for Eigen.
  Map eigen() const { return {data, rows, cols, Eigen::OuterStride<>(stride)}; }
};

}  // namespace phiattn::inline PHIATTN_ABI
