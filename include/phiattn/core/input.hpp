#pragma once

// What comes in: any Eigen expression, behind one type per scalar.

#include <phiattn/core/abi.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/prefetch.hpp>
#include <phiattn/core/rows.hpp>

#include <algorithm>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

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

/// So many numbers on from x. What is empty may have no place at all, and then none of its parts has.
template <class T>
T* further(T* x, Index n) {
  return x == nullptr ? x : x + n;
}

/// A strided view as bytes: what is behind it, and whether two views share an element.
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

  /// Rows [first, first + count).
  Extent slice(Index first, Index count) const {
    return {further(data, first * row_stride), count, cols, row_stride, col_stride, element};
  }

  /// The same where a row lies in one piece, for a Prefetch.
  Span span(Index first, Index count) const {
    if (col_stride != element || data == nullptr) return {};
    return Span::of(data + first * row_stride, count, cols * element, row_stride);
  }
};

/// out <- factor * the rows of `extent`, which hold numbers of type T.
template <class S, class T>
void load_rows(const Extent& extent, S factor, Rows<S> out);

/// The rows of `extent`, which hold numbers of type T, <- x
template <class S, class T>
void store_rows(const Extent& extent, Rows<const S> x);

/// Rows of numbers of any storage type, stride and order, which are loaded as S.
template <ComputeScalar S>
class InputView {
 public:
  /// None: what a call may be given, and was not.
  InputView() = default;
  template <class Derived>
  requires DirectAccess<Derived>
  explicit InputView(const Eigen::DenseBase<Derived>& x)
      : extent_(Extent::of(x.derived())), load_(&load_rows<S, typename Derived::Scalar>) {}
  explicit InputView(Rows<const S> x)
      : InputView({reinterpret_cast<const char*>(x.data), x.rows, x.cols, x.stride * kSize, kSize, kSize},
                  &load_rows<S, S>) {}

  explicit operator bool() const { return load_ != nullptr; }
  Index rows() const { return extent_.rows; }
  Index cols() const { return extent_.cols; }
  Index size() const { return rows() * cols(); }

  /// Rows [first, first + count).
  InputView slice(Index first, Index count) const { return {extent_.slice(first, count), load_}; }

  /// A vector that comes as a row or a column, as a column.
  InputView as_column() const {
    if (cols() == 1) return *this;
    return {{extent_.data, cols(), rows(), extent_.col_stride, extent_.row_stride, extent_.element}, load_};
  }

  /// The same so many bytes further on, as the next head of a tensor lies.
  InputView shifted(Index bytes) const {
    InputView moved = *this;
    moved.extent_.data = further(extent_.data, bytes);
    return moved;
  }

  /// out <- factor * rows [first, first + out.rows), in the compute type and row-major.
  void load(Index first, S factor, Rows<S> out) const { load_(extent_.slice(first, out.rows), factor, out); }

  /// Rows [first, first + room.rows): in place if they lie as rows of S, else loaded into `room`.
  Rows<const S> rows_at(Index first, Rows<S> room) const {
    // To Eigen, a stride of 0 is that of a dense matrix.
    const bool in_rows =
        extent_.data != nullptr && extent_.col_stride == extent_.element && extent_.row_stride != 0;
    if (load_ == &load_rows<S, S> && in_rows) {
      const Extent at = extent_.slice(first, room.rows);
      return {reinterpret_cast<const S*>(at.data), at.rows, at.cols, at.row_stride / kSize};
    }
    load(first, S(1), room);
    return room;
  }

  const Extent& extent() const { return extent_; }

  /// Rows [first, first + count), as far as there are so many, for a Prefetch.
  Span span(Index first, Index count) const { return extent_.span(first, (std::min)(count, rows() - first)); }

 private:
  using Load = void (*)(const Extent&, S factor, Rows<S> out);
  static constexpr auto kSize = static_cast<Index>(sizeof(S));

  InputView(const Extent& extent, Load loader) : extent_(extent), load_(loader) {}

  Extent extent_;
  Load load_ = nullptr;
};

}  // namespace detail

/// A read-only (n, d) argument of the library: any Eigen expression of float, double, half or bfloat16 that converts
/// to S without narrowing. An expression with direct access (matrix, map, block; any stride or storage order) is
/// referred to and later loaded a chunk at a time; any other is evaluated once, here. Lives as long as the call it
/// is made for.
template <detail::ComputeScalar S>
class Input : public detail::InputView<S> {
  using View = detail::InputView<S>;

 public:
  /// None: what a call may be given, and was not.
  Input() = default;

  template <class Derived>
  Input(const Eigen::DenseBase<Derived>& x) {  // implicit: it is how arguments come in
    using T = typename Derived::Scalar;
    static_assert(detail::StorageScalar<T>,
                  "phiattn: an input holds float, double, Eigen::half or Eigen::bfloat16");
    static_assert(!detail::StorageScalar<T> || detail::widens_to<T, S>,
                  "phiattn: an input would narrow; cast it, or use the similarity in double");
    if constexpr (detail::DirectAccess<Derived>) {
      refer() = View(x);
    } else {
      evaluated_ = x.derived().template cast<S>();
      refer() = View(evaluated_);
    }
  }

  /// Rows that lie in memory already; refers to them.
  explicit Input(Rows<const S> x) : View(x) {}
  Input(const View& x) : View(x) {}  // implicit: parts of an input are inputs

  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

 private:
  View& refer() { return *this; }

  Matrix<S> evaluated_;
};

/// Keys and their log-weights, to be given wherever keys are.
template <class K, class W>
struct Weighted {
  const K& k;
  const W& log_weights;
};

/// Keys that count exp(log_weight) times each; one of -inf does not exist, whatever it holds. Log-weights are a vector
/// (n_k). Refers to both.
template <class K, class W>
Weighted<K, W> weighted(const Eigen::DenseBase<K>& k, const Eigen::DenseBase<W>& log_weights) {
  return {k.derived(), log_weights.derived()};
}

/// The keys of a call, with or without log-weights: any Input, or weighted(k, log_weights).
template <detail::ComputeScalar S>
class KeyInput : public Input<S> {
 public:
  template <class Derived>
  KeyInput(const Eigen::DenseBase<Derived>& x) : Input<S>(x) {}  // implicit, as the others
  KeyInput(const detail::InputView<S>& x) : Input<S>(x) {}
  template <class K, class W>
  KeyInput(const Weighted<K, W>& x) : Input<S>(x.k), log_weights_(x.log_weights) {}

  const Input<S>& log_weights() const { return log_weights_; }

 private:
  Input<S> log_weights_;
};

namespace detail {

/// The queries (n, d) of g heads that share their keys, `stride` bytes apart; a single matrix is a group of one. Refers to
/// its first. Loaded with the heads of a token side by side, see Queries.
template <ComputeScalar S>
class InputGroup {
 public:
  InputGroup(const InputView<S>& first, Index heads = 1, Index stride = 0)  // implicit: of a call of one head
      : first_(first), heads_(heads), stride_(stride) {}

  Index rows() const { return first_.rows(); }
  Index cols() const { return first_.cols(); }
  Index heads() const { return heads_; }
  InputGroup slice(Index first, Index count) const { return {first_.slice(first, count), heads_, stride_}; }

  /// out (g n, d) <- factor * rows [first, first + n) of each head
  void load(Index first, S factor, Rows<S> out) const {
    const Index n = out.rows / heads_;
    for (Index h = 0; h < heads_; ++h) {
      head(h).load(first, factor, {out.row(h), n, out.cols, heads_ * out.stride});
    }
  }

  /// One of the heads.
  InputView<S> head(Index h) const { return first_.shifted(h * stride_); }

  Span span(Index first, Index count) const { return heads_ == 1 ? first_.span(first, count) : Span{}; }

 private:
  InputView<S> first_;
  Index heads_, stride_;
};

}  // namespace detail

}  // namespace phiattn::inline PHIATTN_ABI

#define PHIATTN_STORAGE_INSTANCES(prefix, S, T)                    \
  prefix template void load_rows<S, T>(const Extent&, S, Rows<S>); \
  prefix template void store_rows<S, T>(const Extent&, Rows<const S>);
#define PHIATTN_INPUT_INSTANCES(prefix, S)          \
  PHIATTN_STORAGE_INSTANCES(prefix, S, float)       \
  PHIATTN_STORAGE_INSTANCES(prefix, S, double)      \
  PHIATTN_STORAGE_INSTANCES(prefix, S, Eigen::half) \
  PHIATTN_STORAGE_INSTANCES(prefix, S, Eigen::bfloat16)

#if PHIATTN_EXTERN
namespace phiattn::inline PHIATTN_ABI::detail {
PHIATTN_INPUT_INSTANCES(extern, float)
PHIATTN_INPUT_INSTANCES(extern, double)
}  // namespace phiattn::inline PHIATTN_ABI::detail
#else
#include <phiattn/core/input-inl.hpp>
#endif
