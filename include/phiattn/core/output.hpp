#pragma once

// Where results go: any writable Eigen expression, behind one type per scalar.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>

#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace phiattn::inline PHIATTN_ABI {

namespace detail {

template <class D>
concept EigenDense = std::is_base_of_v<Eigen::DenseBase<D>, D>;

/// A view may be a temporary (out.topRows(n)); a matrix of its own must outlive the call.
template <class Out, class D = std::remove_reference_t<Out>>
concept Writable = !std::is_const_v<D> && EigenDense<D> && ((int(D::Flags) & int(Eigen::LvalueBit)) != 0) &&
                   (std::is_lvalue_reference_v<Out> || !std::is_base_of_v<Eigen::PlainObjectBase<D>, D>);

/// The bytes from the first element to behind the last, of at least one.
inline std::pair<const char*, const char*> bytes_of(const Extent& x) {
  const Index down = x.row_stride * (x.rows - 1), across = x.col_stride * (x.cols - 1);
  return {x.data + std::min<Index>(0, down) + std::min<Index>(0, across),
          x.data + std::max<Index>(0, down) + std::max<Index>(0, across) + x.element};
}

/// Whether two views share an element. Exact when both have contiguous rows and a common row stride (as the parts of
/// one packed buffer have); otherwise it goes by the bytes spanned.
inline bool overlap(const Extent& a, const Extent& b) {
  const auto empty = [](const Extent& x) { return x.rows == 0 || x.cols == 0; };
  if (empty(a) || empty(b)) return false;
  const auto [a_first, a_past] = bytes_of(a);
  const auto [b_first, b_past] = bytes_of(b);
  const std::less<> before;
  if (!before(a_first, b_past) || !before(b_first, a_past)) return false;
  const Index stride = a.row_stride;
  const auto rows_are_contiguous = [stride](const Extent& x) {
    return x.col_stride == x.element && x.row_stride == stride && x.cols * x.element <= stride;
  };
  if (!rows_are_contiguous(a) || !rows_are_contiguous(b)) return true;
  const Index shift = (((b.data - a.data) % stride) + stride) % stride;
  return shift < a.cols * a.element || shift + b.cols * b.element > stride;
}

/// Whether a view may have two elements in one place: neither do its rows follow one another, nor its columns.
inline bool coincide(const Extent& x) {
  const auto width = [&x](Index count, Index stride) { return (count - 1) * std::abs(stride) + x.element; };
  if (x.rows == 0 || x.cols == 0) return false;
  const Index row = width(x.cols, x.col_stride), column = width(x.rows, x.row_stride);
  const auto apart = [](Index count, Index stride, Index least) {
    return count == 1 || std::abs(stride) >= least;
  };
  return !(apart(x.cols, x.col_stride, x.element) && apart(x.rows, x.row_stride, row)) &&
         !(apart(x.rows, x.row_stride, x.element) && apart(x.cols, x.col_stride, column));
}

}  // namespace detail

/// A writable (n, dv) argument of the library. Its scalar is S, a wider one, or half or bfloat16 as storage of float. An
/// expression with direct access is written where it lies, any other through itself, once all is there: what it refers
/// to cannot be told, and may be the inputs.
template <detail::ComputeScalar S>
class Output {
 public:
  template <class Out>
  requires detail::Writable<Out> Output(
      Out&& out)  // implicit, and never taken for an options object: those are no Eigen expressions
      : expression_(&out) {
    using D = std::remove_reference_t<Out>;
    using T = typename D::Scalar;
    static_assert(detail::StorageScalar<T>,
                  "phiattn: an output holds float, double, Eigen::half or Eigen::bfloat16");
    static_assert(
        !detail::StorageScalar<T> || detail::widens_to<S, T> || (std::is_same_v<S, float> && sizeof(T) == 2),
        "phiattn: an output would narrow from double; give it as double");
    if constexpr (detail::DirectAccess<D>) {
      extent_ = detail::Extent::of(out);
      store_ = &store_in_place<T>;
    } else {
      extent_.rows = out.rows();
      extent_.cols = out.cols();
      store_ = &store_through<D>;
    }
  }

  Index rows() const { return extent_.rows; }
  Index cols() const { return extent_.cols; }

  /// Rows [first, first + count) as an output of their own.
  Output slice(Index first, Index count) const {
    Output part = *this;
    part.first_ += first;
    part.extent_ = extent_.slice(first, count);
    return part;
  }

  /// rows [first, first + block.rows) <- block
  void store(Index first, Rows<const S> block) const { store_(*this, first, block); }

  void check_shape(Index rows, Index cols) const {
    detail::check_equal("rows of out", extent_.rows, "rows of q", rows);
    detail::check_equal("columns of out", extent_.cols, "columns of v", cols);
    if (extent_.data != nullptr && detail::coincide(extent_)) {
      detail::fail_argument("out: its elements coincide in memory; each needs a place of its own");
    }
  }

  void check_apart_from(const char* name, const detail::InputView<S>& input) const {
    if (extent_.data == nullptr || !detail::overlap(extent_, input.extent())) return;
    std::string message = "out shares memory with ";
    message += name;
    message += "; it must be apart from the inputs";
    detail::fail_argument(message);
  }

  /// Rows [first, first + count), for a Prefetch.
  detail::Span span(Index first, Index count) const { return extent_.span(first, count); }

  /// Calls fill(output) with this one or, where nobody can tell what it overlaps, with a matrix that is then stored.
  template <class Fill>
  auto fill_apart(const Fill& fill) const {
    if (extent_.data != nullptr || extent_.rows == 0 || extent_.cols == 0) return fill(*this);
    Matrix<S> apart(extent_.rows, extent_.cols);
    const auto result = fill(Output(apart));
    store(0, apart);
    return result;
  }

  /// The same so many bytes further on; of what is written where it lies.
  Output shifted(Index bytes) const {
    Output part = *this;
    part.extent_.data = detail::further(extent_.data, bytes);
    return part;
  }

  const detail::Extent& extent() const { return extent_; }

 private:
  using Store = void (*)(const Output&, Index first, Rows<const S> block);

  template <class T>
  static void store_in_place(const Output& out, Index first, Rows<const S> block) {
    detail::store_rows<S, T>(out.extent_.slice(first, block.rows), block);
  }

  template <class D>
  static void store_through(const Output& out, Index first, Rows<const S> block) {
    using T = typename D::Scalar;
    auto rows = static_cast<D*>(out.expression_)->middleRows(out.first_ + first, block.rows);
    if constexpr (std::is_base_of_v<Eigen::ArrayBase<D>, D>) {
      rows = block.eigen().template cast<T>().array();
    } else {
      rows = block.eigen().template cast<T>();
    }
  }

  void* expression_;  // what it was made from
  Index first_ = 0;   // its row that is the first here
  detail::Extent extent_;
  Store store_;
};

namespace detail {

/// Where the results of g heads go that share their keys, `stride` bytes apart: as InputGroup.
template <ComputeScalar S>
class OutputGroup {
 public:
  OutputGroup(const Output<S>& first, Index heads = 1, Index stride = 0)  // implicit: of a call of one head
      : first_(first), heads_(heads), stride_(stride), all_(first.rows()) {}

  Index rows() const { return first_.rows(); }
  Index cols() const { return first_.cols(); }
  Index heads() const { return heads_; }
  OutputGroup slice(Index first, Index count) const {
    OutputGroup part(first_.slice(first, count), heads_, stride_);
    part.begin_ = begin_ + first;
    part.all_ = all_;
    return part;
  }
  /// The number of a row among all rows of the group that this is a slice of, one head behind the other.
  Index row_number(Index t, Index h) const { return h * all_ + begin_ + t; }

  /// rows [first, first + n) of each head <- block (g n, dv)
  void store(Index first, Rows<const S> block) const {
    const Index n = block.rows / heads_;
    for (Index h = 0; h < heads_; ++h) {
      head(h).store(first, {block.row(h), n, block.cols, heads_ * block.stride});
    }
  }

  /// One of the heads.
  Output<S> head(Index h) const { return first_.shifted(h * stride_); }

  Span span(Index first, Index count) const { return heads_ == 1 ? first_.span(first, count) : Span{}; }

 private:
  Output<S> first_;
  Index heads_, stride_;
  Index begin_ = 0, all_;
};

}  // namespace detail
}  // namespace phiattn::inline PHIATTN_ABI
