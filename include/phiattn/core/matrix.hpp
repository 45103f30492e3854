#pragma once

// The types every room shares.

#include <phiattn/core/abi.hpp>

#include <Eigen/Core>
#include <concepts>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

template <class S>
concept ComputeScalar = std::same_as<S, float> || std::same_as<S, double>;

/// What a range, an array or a list holds; <ranges> costs as much as half of Eigen.
template <class R>
using ElementOfRange = std::remove_cvref_t<decltype(*std::begin(std::declval<const R&>()))>;
template <class R>
concept RangeOfIntegers = requires(const R& range) {
  std::end(range);
  requires std::integral<ElementOfRange<R>>;
};

}  // namespace detail

using Index = Eigen::Index;
static_assert(std::numeric_limits<Index>::digits >= 63,
              "phiattn needs indices of 64 bits: leave EIGEN_DEFAULT_DENSE_INDEX_TYPE as Eigen has it");

/// Token = row: all dense storage of the library is row-major.
template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class S>
using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;
template <class S>
using RowVector = Eigen::Matrix<S, 1, Eigen::Dynamic>;

/// A block of tokens or features that a map or a kernel reads or writes in place.
template <class S>
using ConstMatrixRef = Eigen::Ref<const Matrix<S>>;
template <class S>
using MatrixRef = Eigen::Ref<Matrix<S>>;
template <class S>
using ConstVectorRef = Eigen::Ref<const Vector<S>>;
template <class S>
using VectorRef = Eigen::Ref<Vector<S>>;

/// The log-scale of an empty sum. It stands for -inf, but the difference of two such scales is 0 and not NaN.
template <class S>
inline constexpr S kNothing = std::numeric_limits<S>::lowest();

}  // namespace phiattn::inline PHIATTN_ABI
