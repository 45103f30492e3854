// Matrices as a caller may hold them: of any storage type, in either order, with gaps, upside down.
#pragma once

#include <phiattn/core/output.hpp>

#include <algorithm>
#include <functional>
#include <variant>
#include <vector>

#include "bytes.hpp"

namespace fuzz {

enum class Way { in, out };  // as an argument or as a result of attention

/// Numbers of any storage type.
using Numbers = std::variant<std::vector<float>, std::vector<double>, std::vector<Eigen::half>,
                             std::vector<Eigen::bfloat16>>;

/// Whether an argument or a result of compute type S may be stored as T.
template <class T, class S, Way way>
inline constexpr bool kAllowed = way == Way::in ? phiattn::detail::widens_to<T, S>
                                                : phiattn::detail::widens_to<S, T> ||
                                                      (std::is_same_v<S, float> && sizeof(T) == 2);

/// Calls store(T()) for a storage type that is allowed.
template <class S, Way way, class Store>
void with_drawn_type(Bytes& bytes, const Store& store) {
  const auto allowed = [&]<class T>(T) {
    if constexpr (kAllowed<T, S, way>) {
      store(T());
    } else {
      store(S());
    }
  };
  switch (bytes.between(0, 3)) {
    case 0:
      return allowed(Eigen::half());
    case 1:
      return allowed(Eigen::bfloat16());
    case 2:
      return allowed(double());
    default:
      return allowed(float());
  }
}

/// x as it is once stored as these numbers are.
template <class S>
Matrix<S> narrowed_to(const Numbers& numbers, const Matrix<S>& x) {
  return std::visit(
      [&]<class T>(const std::vector<T>&) -> Matrix<S> { return x.template cast<T>().template cast<S>(); },
      numbers);
}

template <class S, Way way>
class Stored {
 public:
  Stored(Bytes& bytes, const Matrix<S>& x) : rows_(x.rows()), cols_(x.cols()), upside_down_(bytes.flag()) {
    const Index gap = bytes.between(0, 3), inner = bytes.between(1, 2);
    if (bytes.flag()) {
      col_stride_ = inner;
      row_stride_ = cols_ * inner + gap;
    } else {
      row_stride_ = inner;
      col_stride_ = rows_ * inner + gap;
    }
    with_drawn_type<S, way>(bytes, [&]<class T>(T) { hold<T>(x); });
  }

  /// What it holds, in the compute type.
  Matrix<S> values() const {
    return std::visit(
        [&](const auto& numbers) -> Matrix<S> {
          const auto view = view_of(numbers);
          if (upside_down_) return view.colwise().reverse().template cast<S>();
          return view.template cast<S>();
        },
        numbers_);
  }

  phiattn::Input<S> input() const {
    return std::visit(
        [&]<class T>(const std::vector<T>& numbers) -> phiattn::Input<S> {
          if constexpr (kAllowed<T, S, Way::in>) {
            const auto view = view_of(numbers);
            if (!upside_down_) return phiattn::Input<S>(view);
            return phiattn::Input<S>(view.colwise().reverse());
          }
          std::abort();
        },
        numbers_);
  }

  /// Calls fill(output) with it as an output.
  void fill(const std::function<void(const phiattn::Output<S>&)>& fill) {
    std::visit(
        [&]<class T>(std::vector<T>& numbers) {
          if constexpr (kAllowed<T, S, Way::out>) {
            auto view = view_of(numbers);
            if (!upside_down_) return fill(view);
            auto turned = view.colwise().reverse();
            fill(turned);
          }
        },
        numbers_);
  }

  /// x as it is once stored here.
  Matrix<S> narrowed(const Matrix<S>& x) const { return narrowed_to(numbers_, x); }

  /// Whether what is between the elements is as it was.
  bool gaps_are_untouched() const {
    return std::visit(
        [&]<class T>(std::vector<T> left) {
          view_of(left).setConstant(static_cast<T>(kGap));
          return std::all_of(left.begin(), left.end(), [](T x) { return x == static_cast<T>(kGap); });
        },
        numbers_);
  }

 private:
  static constexpr float kGap = 7;
  template <class Vector>
  auto view_of(Vector& numbers) const {
    using T = typename Vector::value_type;
    using View = std::conditional_t<std::is_const_v<Vector>, const Matrix<T>, Matrix<T>>;
    return Eigen::Map<View, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>(numbers.data(), rows_, cols_,
                                                                              {row_stride_, col_stride_});
  }

  template <class T>
  void hold(const Matrix<S>& x) {
    const bool any = rows_ > 0 && cols_ > 0;
    const Index size = any ? (rows_ - 1) * row_stride_ + (cols_ - 1) * col_stride_ + 1 : 0;
    std::vector<T> numbers(static_cast<std::size_t>(size), static_cast<T>(kGap));
    auto view = view_of(numbers);
    if (upside_down_) {
      view.colwise().reverse() = x.template cast<T>();
    } else {
      view = x.template cast<T>();
    }
    numbers_ = std::move(numbers);
  }

  Index rows_, cols_, row_stride_, col_stride_;
  bool upside_down_;
  Numbers numbers_;
};

}  // namespace fuzz
