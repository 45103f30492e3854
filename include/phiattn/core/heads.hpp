#pragma once

// Tensors of heads, wherever they lie.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/output.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

/// The order in which a tensor of heads lies in memory, the last index first: batch, head, token, dimension as PyTorch's
/// attention has it, or batch, token, head, dimension as projections of a model leave it.
enum class Layout { bhtd, bthd };

struct HeadsShape {
  Index batch = 1, heads = 1, tokens = 0, dim = 0;

  friend bool operator==(const HeadsShape&, const HeadsShape&) = default;
};

/// From one to the next, in numbers.
struct HeadsStrides {
  Index batch = 0, head = 0, token = 0, dim = 1;
};

/// A view of (batch, heads, tokens, dim) numbers: float, double, Eigen::half or Eigen::bfloat16, const for inputs.
/// @throws std::invalid_argument  on a negative extent
template <class T>
class Heads {
 public:
  using Scalar = std::remove_const_t<T>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  using Matrix = Eigen::Map<
      std::conditional_t<std::is_const_v<T>, const phiattn::Matrix<Scalar>, phiattn::Matrix<Scalar>>, 0,
      Strides>;

  Heads(T* data, const HeadsShape& shape, const HeadsStrides& strides)
      : data_(data), shape_(shape), strides_(strides) {
    detail::check_at_least("batch", shape.batch, 0);
    detail::check_at_least("heads", shape.heads, 0);
    detail::check_at_least("tokens", shape.tokens, 0);
    detail::check_at_least("dim", shape.dim, 0);
  }
  Heads(T* data, const HeadsShape& shape, Layout layout) : Heads(data, shape, dense(shape, layout)) {}
  template <class U>
  requires(std::is_const_v<T>&& std::is_same_v<U, Scalar>)
      Heads(const Heads<U>& other)  // implicit, as from T* to const T*
      : data_(other.data()), shape_(other.shape()), strides_(other.strides()) {}

  T* data() const { return data_; }
  const HeadsShape& shape() const { return shape_; }
  const HeadsStrides& strides() const { return strides_; }

  /// Head h of sequence b, (tokens, dim).
  Matrix operator()(Index b, Index h) const {
    return {detail::further(data_, b * strides_.batch + h * strides_.head), shape_.tokens, shape_.dim,
            Strides(strides_.token, strides_.dim)};
  }

  /// The same numbers, of n tokens or heads from `first` on.
  Heads tokens(Index first, Index n) const {
    return {detail::further(data_, first * strides_.token),
            {shape_.batch, shape_.heads, n, shape_.dim},
            strides_};
  }
  Heads heads(Index first, Index n) const {
    return {detail::further(data_, first * strides_.head),
            {shape_.batch, n, shape_.tokens, shape_.dim},
            strides_};
  }

 private:
  static HeadsStrides dense(const HeadsShape& s, Layout layout) {
    const Index all = s.heads * s.tokens * s.dim;
    return layout == Layout::bhtd ? HeadsStrides{all, s.tokens * s.dim, s.dim, 1}
                                  : HeadsStrides{all, s.dim, s.heads * s.dim, 1};
  }

  T* data_;
  HeadsShape shape_;
  HeadsStrides strides_;
};

namespace detail {

template <class X>
using ElementOf = std::remove_pointer_t<decltype(std::declval<X&>().data())>;

/// An Eigen::Tensor or TensorMap of four indices.
template <class X>
concept TensorOfHeads = requires(X& x) {
  x.data();
  x.dimension(0);
  requires int(X::NumDimensions) == 4;
  X::Layout;
};

/// A std::mdspan of four indices, or another that walks like one.
template <class X>
concept SpanOfHeads = requires(const X& x) {
  requires X::rank()
  == 4;
  x.data_handle();
  x.extent(0);
  x.stride(0);
};

template <class T>
Heads<T> heads_in(T* data, Layout layout, const std::array<Index, 4>& extents,
                  const std::array<Index, 4>& strides) {
  const std::size_t h = layout == Layout::bhtd ? 1 : 2, t = 3 - h;
  return {data, HeadsShape{extents[0], extents[h], extents[t], extents[3]},
          HeadsStrides{strides[0], strides[h], strides[t], strides[3]}};
}

}  // namespace detail

/// The heads of x (batch * tokens, heads * dim), side by side as a projection leaves them; x is a matrix or a part of one,
/// such as qkv.middleCols(...), and must outlive the view.
/// @throws std::invalid_argument  if heads or batch do not divide the columns or rows
template <class X>
requires detail::DirectAccess<std::remove_reference_t<X>>
auto packed_heads(X&& x, Index heads, Index batch = 1) {
  detail::check_at_least("heads", heads, 1);
  detail::check_at_least("batch", batch, 1);
  detail::check_equal("remainder of columns over heads", x.cols() % heads, "none", 0);
  detail::check_equal("remainder of rows over batch", x.rows() % batch, "none", 0);
  const Index tokens = x.rows() / batch, dim = x.cols() / heads;
  return Heads<detail::ElementOf<X>>(
      x.data(), HeadsShape{batch, heads, tokens, dim},
      HeadsStrides{tokens * x.rowStride(), dim * x.colStride(), x.rowStride(), x.colStride()});
}

/// A tensor of four indices in the given order: Eigen's, of either storage order, or a std::mdspan. It must outlive the view.
template <class X>
requires detail::TensorOfHeads<std::remove_reference_t<X>>
auto heads_of(X&& x, Layout layout) {
  constexpr bool kRowMajor = int(std::remove_reference_t<X>::Layout) == int(Eigen::RowMajor);
  std::array<Index, 4> extents{}, strides{};
  Index next = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t axis = kRowMajor ? 3 - i : i;
    extents[axis] = x.dimension(axis);
    strides[axis] = std::exchange(next, next * extents[axis]);
  }
  return detail::heads_in(x.data(), layout, extents, strides);
}
template <detail::SpanOfHeads X>
auto heads_of(const X& x, Layout layout) {
  std::array<Index, 4> extents{}, strides{};
  for (std::size_t axis = 0; axis < 4; ++axis) {
    extents[axis] = static_cast<Index>(x.extent(axis));
    strides[axis] = static_cast<Index>(x.stride(axis));
  }
  return detail::heads_in(x.data_handle(), layout, extents, strides);
}

/// Heads<T> that come in, behind one type per scalar; see Input.
template <detail::ComputeScalar S>
class HeadsInput {
 public:
  template <class T>
  HeadsInput(const Heads<T>& x)  // implicit: it is how arguments come in
      : first_(x.shape().batch > 0 && x.shape().heads > 0 ? x(0, 0) : nothing(x)),
        shape_(x.shape()),
        batch_stride_(x.strides().batch * kSize<T>),
        head_stride_(x.strides().head * kSize<T>) {
    using Stored = std::remove_const_t<T>;
    static_assert(detail::StorageScalar<Stored>,
                  "phiattn: an input holds float, double, Eigen::half or Eigen::bfloat16");
    static_assert(!detail::StorageScalar<Stored> || detail::widens_to<Stored, S>,
                  "phiattn: an input would narrow; use the similarity in double");
  }

  const HeadsShape& shape() const { return shape_; }
  /// (tokens, dim) of heads [h, h + n) of sequence b.
  detail::InputGroup<S> group(Index b, Index h, Index n) const { return {at(b, h), n, head_stride_}; }
  detail::InputView<S> head(Index b, Index h) const { return at(b, h); }
  detail::Extent extent(Index b, Index h) const { return at(b, h).extent(); }

 private:
  template <class T>
  static constexpr auto kSize = static_cast<Index>(sizeof(T));
  template <class T>
  static typename Heads<T>::Matrix nothing(const Heads<T>& x) {
    return {nullptr, 0, x.shape().dim, typename Heads<T>::Strides(0, 1)};
  }

  detail::InputView<S> at(Index b, Index h) const {
    return first_.shifted(b * batch_stride_ + h * head_stride_);
  }

  detail::InputView<S> first_;
  HeadsShape shape_;
  Index batch_stride_, head_stride_;
};

namespace detail {

/// The bytes from the first to the last of a tensor.
template <class X>
std::pair<const char*, const char*> bytes_of(const X& x) {
  const HeadsShape shape = x.shape();
  std::pair<const char*, const char*> all{nullptr, nullptr};
  if (shape.batch == 0 || shape.heads == 0 || shape.tokens == 0 || shape.dim == 0) return all;
  for (const Index b : {Index{0}, shape.batch - 1}) {
    for (const Index h : {Index{0}, shape.heads - 1}) {
      const auto [first, past] = bytes_of(x.extent(b, h));
      const std::less<> before;
      if (all.first == nullptr || before(first, all.first)) all.first = first;
      if (all.second == nullptr || before(all.second, past)) all.second = past;
    }
  }
  return all;
}

template <class X, class Y>
bool bytes_meet(const X& x, const Y& y) {
  const auto [x_first, x_past] = bytes_of(x);
  const auto [y_first, y_past] = bytes_of(y);
  const std::less<> before;
  return before(x_first, y_past) && before(y_first, x_past);
}

}  // namespace detail

/// Heads<T> that results go to; see Output.
template <detail::ComputeScalar S>
class HeadsOutput {
 public:
  template <class T>
  requires(!std::is_const_v<T>) HeadsOutput(const Heads<T>& x)  // implicit
      : first_(first_of(x)),
        shape_(x.shape()),
        batch_stride_(x.strides().batch * kSize<T>),
        head_stride_(x.strides().head * kSize<T>) {}

  const HeadsShape& shape() const { return shape_; }
  detail::OutputGroup<S> group(Index b, Index h, Index n) const {
    return {first_.shifted(b * batch_stride_ + h * head_stride_), n, head_stride_};
  }

  /// Each index steps over all that those of smaller steps span.
  void check_places() const {
    if (shape_.batch * shape_.heads * shape_.tokens * shape_.dim == 0) return;
    const detail::Extent x = first_.extent();
    std::array<std::pair<Index, Index>, 4> axes{{{std::abs(batch_stride_), shape_.batch},
                                                 {std::abs(head_stride_), shape_.heads},
                                                 {std::abs(x.row_stride), shape_.tokens},
                                                 {std::abs(x.col_stride), shape_.dim}}};
    std::sort(axes.begin(), axes.end());
    Index span = x.element;
    for (const auto& [stride, count] : axes) {
      if (count == 1) continue;
      if (stride < span)
        detail::fail_argument("out: its elements coincide in memory; each needs a place of its own");
      span += stride * (count - 1);
    }
  }

  void check_apart_from(const char* name, const HeadsInput<S>& input) const {
    const HeadsShape of_out = shape_, of_in = input.shape();
    if (!detail::bytes_meet(*this, input)) return;
    for (Index i = 0; i < of_out.batch * of_out.heads; ++i) {
      const detail::Extent ours = extent(i / of_out.heads, i % of_out.heads);
      for (Index j = 0; j < of_in.batch * of_in.heads; ++j) {
        if (detail::overlap(ours, input.extent(j / of_in.heads, j % of_in.heads))) fail_shared(name);
      }
    }
  }
  void check_apart_from(const char* name, const detail::InputView<S>& input) const {
    for (Index i = 0; i < shape_.batch * shape_.heads; ++i) {
      if (detail::overlap(extent(i / shape_.heads, i % shape_.heads), input.extent())) fail_shared(name);
    }
  }

  detail::Extent extent(Index b, Index h) const {
    return first_.shifted(b * batch_stride_ + h * head_stride_).extent();
  }

 private:
  [[noreturn]] static void fail_shared(const char* name) {
    detail::fail_argument(std::string("out shares memory with ") + name +
                          "; it must be apart from the inputs");
  }

  template <class T>
  static constexpr auto kSize = static_cast<Index>(sizeof(T));
  template <class T>
  static Output<S> first_of(const Heads<T>& x) {
    const bool any = x.shape().batch > 0 && x.shape().heads > 0;
    typename Heads<T>::Matrix first(any ? x.data() : nullptr, any ? x.shape().tokens : 0, x.shape().dim,
                                    typename Heads<T>::Strides(x.strides().token, x.strides().dim));
    return Output<S>(first);
  }

  Output<S> first_;
  HeadsShape shape_;
  Index batch_stride_, head_stride_;
};

}  // namespace phiattn::inline PHIATTN_ABI
