#pragma once

// Functions of symmetric matrices: Eigen's solver takes seconds to compile, so it is compiled once.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/matrix.hpp>

#include <concepts>
#include <functional>

namespace phiattn::inline PHIATTN_ABI::detail {

/// f(X) = V f(Lambda) V^T of a symmetric X = V Lambda V^T. In double alone, like all fits.
/// @param f  turns the eigenvalues, ascending, into those of the result
template <std::same_as<double> S>
Matrix<S> symmetric_function(const Matrix<S>& x, const std::function<void(Vector<S>& eigenvalues)>& f);

}  // namespace phiattn::inline PHIATTN_ABI::detail

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
extern template Matrix<double> symmetric_function<double>(const Matrix<double>&,
                                                          const std::function<void(Vector<double>&)>&);
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/core/symmetric_function-inl.hpp>
#endif
