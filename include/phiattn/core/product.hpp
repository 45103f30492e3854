#pragma once

// The dense products of the library, in row-major blocks: the one place to make them fast, and compiled once for a
// scalar however many similarities there are. Next: core/input.hpp.

#include <phiattn/core/matrix.hpp>

namespace phiattn::detail {

/// out <- a b
template <class S>
void multiply(const ConstMatrixRef<S>& a, const ConstMatrixRef<S>& b, MatrixRef<S> out) {
  out.noalias() = a * b;
}

/// out <- out + a b
template <class S>
void multiply_add(const ConstMatrixRef<S>& a, const ConstMatrixRef<S>& b, MatrixRef<S> out) {
  out.noalias() += a * b;
}

/// out <- a b'
template <class S>
void multiply_transposed(const ConstMatrixRef<S>& a, const ConstMatrixRef<S>& b, MatrixRef<S> out) {
  out.noalias() = a * b.transpose();
}

/// out <- out + a' b
template <class S>
void transposed_multiply_add(const ConstMatrixRef<S>& a, const ConstMatrixRef<S>& b, MatrixRef<S> out) {
  out.noalias() += a.transpose() * b;
}

}  // namespace phiattn::detail
