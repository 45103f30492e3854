#pragma once

// The log-scale of a linear state: why it needs no epsilon.

#include <phiattn/attention/state_scale.hpp>
#include <phiattn/core/exp.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/prefetch.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// The scale of positive maps: one logarithm for each feature, c_i = max_j b_i(k_j). The state then holds sums over
/// exp(b - c), and a query weighs them by exp(a_i + c_i - max_i(a_i + c_i)): every term is in [0, 1], and one product
/// is exactly 1.
///
/// A block of keys b, with log_scale (n) to be added to its rows, is first surveyed, then admitted or not, then the
/// scale is raised to take it in, and then it turns into weights. Rows are whole packets, padded by kPadding.
template <class S>
class PerFeatureScale {
 public:
  using Scalar = S;
  static constexpr bool kPositive = true;
  static constexpr S kPadding = -std::numeric_limits<S>::infinity();

  explicit PerFeatureScale(Index m)
      : log_(RowVector<S>::Constant(padded<S>(m), kNothing<S>)), raised_(log_), running_(log_) {}

  /// Whether no key has been there.
  bool nothing() const { return nothing_; }

  /// Finds the scale C after keys b and whether one of their features is NaN or infinitely large.
  void survey(const FeatureRows<S>& keys) {
    const Rows<S>& b = keys.values;
    using P = Packet<S>;
    P finite = pset1<P>(S(0));  // NaN once it met one that is not
    P rise = pset1<P>(S(0));
    in_steps<4>(b.cols, kPacket<S>, [&]<int N>(Index i) {
      P top[std::size_t{N}], remnant[std::size_t{N}];
      unroll<N>([&](auto p) PHIATTN_INLINE {
        top[p] = ploadu<P>(log_.data() + i + p * kPacket<S>);
        remnant[p] = pset1<P>(S(0));
      });
      const S* row = b.data + i;
      for (Index j = 0; j < b.rows; ++j, row += b.stride) {
        const P shift = pset1<P>(keys.log_scale[j]);
        unroll<N>([&](auto p) PHIATTN_INLINE {
          const P x = padd(ploadu<P>(row + p * kPacket<S>), shift);
          // The first argument of pmax prevails where one is NaN.
          remnant[p] = pmadd(pmax(x, pset1<P>(kNothing<S>)), pset1<P>(S(0)), remnant[p]);
          top[p] = pmax(top[p], x);
        });
      }
      unroll<N>([&](auto p) PHIATTN_INLINE {
        rise = pmax(rise, psub(top[p], ploadu<P>(log_.data() + i + p * kPacket<S>)));
        pstoreu(raised_.data() + i + p * kPacket<S>, top[p]);
        finite = padd(finite, remnant[p]);
      });
    });
    finite_ = predux(finite) == 0;
    rises_ = predux_max(rise) > 0;
  }

  /// Whether rows a, as many for each key, and the surveyed b can be taken as one block: all is finite and, with c(t) the
  /// scale after the key beside row t,
  ///     max_i(a_ti + C_i) - max_i(a_ti + c_i(t)) <= 40   for every t
  bool admits(const FeatureRows<S>& queries, const FeatureRows<S>& keys) {
    if (!finite_) return false;
    const auto a = queries.values.eigen(), b = keys.values.eigen();
    const S* log_scale = keys.log_scale;
    running_ = log_.cwiseMax((b.row(0).array() + log_scale[0]).matrix());
    if ((raised_ - running_).maxCoeff() <= kSafeGap<S>) return true;
    const Index heads = a.rows() / b.rows();
    for (Index t = 0; t < a.rows(); ++t) {
      const Index j = t / heads;
      if (t % heads == 0) running_ = running_.cwiseMax((b.row(j).array() + log_scale[j]).matrix());
      if ((a.row(t) + raised_).maxCoeff() - (a.row(t) + running_).maxCoeff() > kSafeGap<S>) return false;
    }
    return true;
  }

  /// Raises the scale to C; the sums so far follow.
  void raise(Matrix<S>& sums, Vector<S>& normaliser) {
    nothing_ = false;
    if (!rises_) return;
    for (Index i = 0; i < sums.rows(); ++i) {
      if (raised_(i) == log_(i)) continue;
      const S shrink = decay(log_(i), raised_(i));
      sums.row(i) *= shrink;
      normaliser(i) *= shrink;
    }
    log_ = raised_;
  }

  /// Keys b become weights exp(b + log_scale - c); normaliser += their sums over the keys.
  void weigh_keys(const FeatureRows<S>& keys, Vector<S>& normaliser, Prefetch& ahead) const {
    using P = Packet<S>;
    // Stores of packets may alias whatever lies in memory: pointers, strides and counts are better kept in registers.
    const Index n = keys.values.rows, stride = keys.values.stride;
    S* const rows = keys.values.data;
    const S* const shifts = keys.log_scale;
    in_steps<4>(keys.values.cols, kPacket<S>, [&]<int N>(Index i) {
      P scale[std::size_t{N}], sum[std::size_t{N}];
      unroll<N>([&](auto p) PHIATTN_INLINE {
        scale[p] = ploadu<P>(log_.data() + i + p * kPacket<S>);
        sum[p] = ploadu<P>(normaliser.data() + i + p * kPacket<S>);
      });
      S* row = rows + i;
      for (Index j = 0; j < n; ++j, row += stride) {
        ahead();
        ahead();
        const P shift = pset1<P>(shifts[j]);
        unroll<N>([&](auto p) PHIATTN_INLINE {
          S* x = row + p * kPacket<S>;
          const P weight = packet_exp_to_one<S>(P(psub(padd(ploadu<P>(x), shift), scale[p])));
          sum[p] = padd(sum[p], weight);
          pstoreu(x, weight);
        });
      }
      unroll<N>([&](auto p) PHIATTN_INLINE { pstoreu(normaliser.data() + i + p * kPacket<S>, sum[p]); });
    });
  }

  /// Queries a become weights on the sums; normaliser_out(t) is theirs, log_scale(t) += the scale they were divided by.
  void weigh_queries(const FeatureRows<S>& queries, const Vector<S>& normaliser, S* normaliser_out,
                     Prefetch& ahead) const {
    const Index n = queries.rows();
    if (nothing_) {
      queries.values.eigen().setZero();
      std::fill_n(normaliser_out, n, S(0));
      queries.log_scales().setConstant(kNothing<S>);
      return;
    }
    Index t = 0;
    for (; t + 4 <= n; t += 4) weigh_rows<4, 1>(t, queries, normaliser, normaliser_out, ahead);
    for (; t < n; ++t) weigh_rows<1, 4>(t, queries, normaliser, normaliser_out, ahead);
  }

  /// Raises this scale and `other` to the larger of both: these sums follow, and `weight(i)` is what the sums of the
  /// other must be multiplied by.
  void merge(const PerFeatureScale& other, Matrix<S>& sums, Vector<S>& normaliser) {
    if (other.nothing_) return;
    raised_ = log_.cwiseMax(other.log_);
    rises_ = true;
    raise(sums, normaliser);
  }
  S weight_of(const PerFeatureScale& other, Index i) const { return decay(other.log_(i), log_(i)); }

 private:
  /// Rows [t, t + Rows), Packets packets at a time: so many sums that the next need not wait for the last.
  template <int Rows, int Packets>
  void weigh_rows(Index t, const FeatureRows<S>& queries, const Vector<S>& normaliser, S* normaliser_out,
                  Prefetch& ahead) const {
    using P = Packet<S>;
    P top[std::size_t{Rows * Packets}], sum[std::size_t{Rows * Packets}];
    unroll<Rows * Packets>([&](auto s) PHIATTN_INLINE {
      top[s] = pset1<P>(kNothing<S>);
      sum[s] = pset1<P>(S(0));
    });
    const Index cols = queries.values.cols, stride = queries.values.stride;
    S* const rows = queries.values.row(t);
    const S* const scale = log_.data();
    const S* const z = normaliser.data();
    const auto each = [&](const auto& step) {
      in_steps<Packets>(cols, kPacket<S>, [&]<int N>(Index i) {
        ahead();
        unroll<N>([&](auto p) PHIATTN_INLINE {
          const Index column = i + p * kPacket<S>;
          const P c = ploadu<P>(scale + column), of_sum = ploadu<P>(z + column);
          unroll<Rows>([&](auto r) PHIATTN_INLINE {
            step(std::integral_constant<int, r * Packets + p>{}, rows + r * stride + column, c, of_sum);
          });
        });
      });
    };
    each([&](auto s, const S* x, const P& c, const P&)
             PHIATTN_INLINE { top[s] = pmax(top[s], padd(ploadu<P>(x), c)); });
    S shift[std::size_t{Rows}];
    unroll<Rows>([&](auto r) PHIATTN_INLINE {
      P highest = top[r * Packets];
      unroll<Packets - 1>([&](auto p) PHIATTN_INLINE { highest = pmax(highest, top[r * Packets + p + 1]); });
      shift[r] = predux_max(highest);
      queries.log_scale[t + r] += shift[r];
    });
    each([&](auto s, S* x, const P& c, const P& of_sum) PHIATTN_INLINE {
      const P weight = packet_exp_to_one<S>(P(psub(padd(ploadu<P>(x), c), pset1<P>(shift[s / Packets]))));
      sum[s] = pmadd(weight, of_sum, sum[s]);
      pstoreu(x, weight);
    });
    unroll<Rows>([&](auto r) PHIATTN_INLINE {
      P total = sum[r * Packets];
      unroll<Packets - 1>([&](auto p) PHIATTN_INLINE { total = padd(total, sum[r * Packets + p + 1]); });
      normaliser_out[t + r] = predux(total);
    });
  }

  RowVector<S> log_;
  RowVector<S> raised_;   // C: the scale to come
  RowVector<S> running_;  // scratch: the scale after one more row
  bool finite_ = true;    // the keys surveyed last are
  bool rises_ = false;    // to take them in
  bool nothing_ = true;   // no key has been there
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
