// Tensors of heads as a caller may hold them: of any storage type, their axes in any order, with gaps, backwards, repeated.
#pragma once

#include <phiattn/core/heads.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <variant>
#include <vector>

#include "stored.hpp"

namespace fuzz {

using phiattn::HeadsShape;
using phiattn::HeadsStrides;

template <class S, Way way>
class StoredHeads {
 public:
  /// Of normals of the given size, or of zeros.
  StoredHeads(Bytes& bytes, const HeadsShape& shape, double size)
      : shape_(shape), strides_(draw_strides(bytes)) {
    const auto seed = static_cast<std::uint64_t>(bytes.between(0, 0xFFFF));
    with_drawn_type<S, way>(bytes, [&]<class T>(T) {
      std::vector<T> numbers(static_cast<std::size_t>(room_), static_cast<T>(kGap));
      for_each_head([&](Index b, Index h) {
        const auto id = seed + 1000 * static_cast<std::uint64_t>(b * shape_.heads + h);
        view_of(numbers)(b, h) =
            laws::gaussian<float>(shape_.tokens, shape_.dim, id, size).template cast<T>();
      });
      numbers_ = std::move(numbers);
    });
  }

  const HeadsShape& shape() const { return shape_; }

  /// What a head holds, in the compute type.
  Matrix<S> head(Index b, Index h) const {
    return std::visit(
        [&](const auto& numbers) -> Matrix<S> { return view_of(numbers)(b, h).template cast<S>(); },
        numbers_);
  }

  void set(Index b, Index h, Index t, Index c, S number) {
    std::visit(
        [&]<class T>(std::vector<T>& numbers) { view_of(numbers)(b, h)(t, c) = static_cast<T>(number); },
        numbers_);
  }

  phiattn::HeadsInput<S> input() const {
    return std::visit(
        [&]<class T>(const std::vector<T>& numbers) -> phiattn::HeadsInput<S> {
          if constexpr (kAllowed<T, S, Way::in>) return view_of(numbers);
          std::abort();
        },
        numbers_);
  }
  phiattn::HeadsOutput<S> output() {
    return std::visit(
        [&]<class T>(std::vector<T>& numbers) -> phiattn::HeadsOutput<S> {
          if constexpr (kAllowed<T, S, Way::out>) return view_of(numbers);
          std::abort();
        },
        numbers_);
  }

  /// x as it is once stored here.
  Matrix<S> narrowed(const Matrix<S>& x) const { return narrowed_to(numbers_, x); }

  /// Whether what is between the elements is as it was.
  bool gaps_are_untouched() const {
    return std::visit(
        [&]<class T>(std::vector<T> left) {
          for_each_head([&](Index b, Index h) { view_of(left)(b, h).setConstant(static_cast<T>(kGap)); });
          return std::all_of(left.begin(), left.end(), [](T x) { return x == static_cast<T>(kGap); });
        },
        numbers_);
  }

 private:
  static constexpr float kGap = 7;

  HeadsStrides draw_strides(Bytes& bytes) {
    const std::array<Index, 4> counts{shape_.batch, shape_.heads, shape_.tokens, shape_.dim};
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t i = 3; i > 0; --i) {
      std::swap(order[i], order[static_cast<std::size_t>(bytes.between(0, static_cast<Index>(i)))]);
    }
    std::array<Index, 4> strides{};
    room_ = 1;
    for (const std::size_t axis : order) {
      const Index kind = bytes.between(0, 7);
      if (way == Way::in && kind == 0) continue;  // the same again and again
      const Index stride = room_ + (kind == 1 ? bytes.between(1, 3) : 0);
      room_ += stride * std::max<Index>(counts[axis] - 1, 0);
      strides[axis] = kind == 2 ? -stride : stride;
      if (kind == 2) first_ += stride * std::max<Index>(counts[axis] - 1, 0);
    }
    return {strides[0], strides[1], strides[2], strides[3]};
  }

  template <class Vector>
  auto view_of(Vector& numbers) const {
    using T = typename Vector::value_type;
    using View = std::conditional_t<std::is_const_v<Vector>, const T, T>;
    return phiattn::Heads<View>(numbers.data() + first_, shape_, strides_);
  }

  template <class Visit>
  void for_each_head(const Visit& visit) const {
    for (Index b = 0; b < shape_.batch; ++b) {
      for (Index h = 0; h < shape_.heads; ++h) visit(b, h);
    }
  }

  HeadsShape shape_;
  Index room_ = 1, first_ = 0;
  HeadsStrides strides_;
  Numbers numbers_;
};

}  // namespace fuzz
