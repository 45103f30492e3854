#pragma once

// Centres of the keys, as a memory keeps them.

#include <phiattn/core/check.hpp>
#include <phiattn/core/input.hpp>
#include <phiattn/core/matrix.hpp>
#include <phiattn/core/workspace.hpp>
#include <phiattn/memories/nearest_centres.hpp>
#include <phiattn/memories/token_frame.hpp>

#include <cmath>
#include <memory>
#include <utility>

namespace phiattn::inline PHIATTN_ABI::detail {

/// The centres of a memory, at its scale and in its compute type. Copies share them.
template <class S>
class Codebook {
 public:
  /// @throws std::invalid_argument  if there are no centres or of another dimension than the frame
  Codebook(const Input<double>& centres, const TokenFrame<S>& frame) {
    check_at_least("rows of centres", centres.rows(), 1);
    check_equal("columns of centres", centres.cols(), "dimension d", frame.dimension());
    Matrix<double> rows(centres.rows(), centres.cols());
    centres.load(0, std::sqrt(frame.scale()), rows);
    Centres own{rows.cast<S>(), {}};
    own.half_squares = own.rows.rowwise().squaredNorm() / 2;
    centres_ = std::make_shared<const Centres>(std::move(own));
  }

  Index size() const { return centres_->rows.rows(); }

  /// The centre of each key (n, d) of the frame.
  const Index* nearest(Workspace::Frame& frame, Rows<const S> keys) const {
    auto* const nearest = frame.numbers<Index>(keys.rows);
    Workspace::Frame own;
    nearest_centres<S>(keys, centres_->rows, centres_->half_squares.data(), own.rows<S>(keys.rows, size()),
                       nearest);
    return nearest;
  }

  void check_same(const Codebook& other) const {
    if (other.centres_ == centres_ || (other.size() == size() && other.centres_->rows == centres_->rows))
      return;
    fail_argument("merge: the memories differ in their centres");
  }

 private:
  struct Centres {
    Matrix<S> rows;
    Vector<S> half_squares;
  };
  std::shared_ptr<const Centres> centres_;
};

}  // namespace phiattn::inline PHIATTN_ABI::detail
