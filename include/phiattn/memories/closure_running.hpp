#pragma once

// The moments of closures as the tokens of a block come in.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/packet.hpp>
#include <phiattn/core/rows.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/closure_block.hpp>
#include <phiattn/memories/closure_moments.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

PHIATTN_HUSH_BEGIN

namespace phiattn::inline PHIATTN_ABI::detail {

/// What a row of a block sees of each of several closures: all tokens before the block, and of the block's own those that
/// were added so far (Welford 1962, with weights).
template <class S>
struct RunningClosures {
  Rows<S> means;    // (2 closures, d): those before the block, and then how far they have moved since
  Rows<S> seconds;  // (closures, d): the diagonal of the second moments, if that is wanted
  S* normalisers;
  S* log_normalisers;
  S* frozen;  // the deviation of scores beyond which the sum freezes
  Index* seen;
  LogCount* counts;

  static RunningClosures of(Workspace::Frame& frame, const std::vector<ClosureMoments<S>>& closures) {
    const auto count = static_cast<Index>(closures.size());
    const Index d = closures.front().mean.size();
    const bool diagonal = !closures.front().is_full();
    RunningClosures running{frame.rows<S>(2 * count, d),   frame.rows<S>(diagonal ? count : 0, d),
                            frame.numbers<S>(count),       frame.numbers<S>(count),
                            frame.numbers<S>(count),       frame.numbers<Index>(count),
                            frame.numbers<LogCount>(count)};
    running.shifts().eigen().setZero();
    for (Index g = 0; g < count; ++g) {
      const ClosureMoments<S>& closure = closures[static_cast<std::size_t>(g)];
      std::copy_n(closure.mean.data(), d, running.means.row(g));
      if (diagonal) std::copy_n(closure.second.data(), d, running.seconds.row(g));
      running.normalisers[g] = closure.normaliser;
      running.counts[g] = closure.count;
      running.seen[g] = 0;
      running.count_anew(g, closure.options);
    }
    return running;
  }

  /// Numbers of type S that of() takes, at most.
  static Index room(Index closures, Index d) {
    return closures * (3 * d + 3 + Index{sizeof(Index) + sizeof(LogCount)} / Index{sizeof(S)});
  }

  /// The next token of closure g, which is the given row of the block.
  void add(Index g, const ClosureBlock<S>& block, Index row, const ClosureOptions& options) const {
    ++seen[g];
    counts[g].add(static_cast<double>(block.log_counts[row]));
    if (const S weight = block.weights[row]; weight != 0) {
      const S before = normalisers[g], share = weight / (before + weight);
      const S* const token = block.keys.row(row);
      S *const shift = shifts().row(g), *const second = seconds.rows > 0 ? seconds.row(g) : nullptr;
      in_packets<S>(means.cols, [&]<class P>(Index l) PHIATTN_INLINE {
        const P deviation = psub(ploadu<P>(token + l), ploadu<P>(shift + l));
        const P part = pmul(pset1<P>(share), deviation);
        pstoreu(shift + l, P(padd(ploadu<P>(shift + l), part)));
        if (second) {
          const P square = pmul(part, deviation);
          pstoreu(second + l, P(pmadd(pset1<P>(before), square, ploadu<P>(second + l))));
        }
      });
      normalisers[g] = before + weight;
    }
    count_anew(g, options);
  }

 private:
  Rows<S> shifts() const { return means.middle(means.rows / 2, means.rows / 2); }
  void count_anew(Index g, const ClosureOptions& options) const {
    log_normalisers[g] = std::log(normalisers[g]);
    frozen[g] = static_cast<S>(counts[g].frozen(options.freezing));
  }
};

}  // namespace phiattn::inline PHIATTN_ABI::detail

PHIATTN_HUSH_END
