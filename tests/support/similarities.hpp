// The similarities that every law is tested with, behind one type per scalar: laws are compiled once, not once for
// each of them. They are listed in laws/cases_*.cpp; a new one is a line there.
#pragma once

#include <phiattn/attention/memory.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/oracle.hpp"

namespace laws {

using phiattn::AttentionOptions;
using phiattn::AttentionStatus;
using phiattn::Index;
using phiattn::Input;
using phiattn::Matrix;
using phiattn::Output;
using phiattn::Partial;

/// Any memory of the library, as a value.
template <class S>
class Memory {
 public:
  using Scalar = S;

  // That M is another type comes first: whether this one is a memory is what is being asked.
  template <class M>
  requires(!std::same_as<M, Memory>) && phiattn::Memory<M> explicit Memory(M memory)
      : model_(std::make_unique<Model<M>>(std::move(memory))) {}  // Model: support/case_of.hpp

  Memory(const Memory& other) : model_(other.model_->clone()) {}
  Memory(Memory&&) = default;
  Memory& operator=(Memory other) {
    model_ = std::move(other.model_);
    return *this;
  }
  ~Memory() = default;

  void append(const Input<S>& k, const Input<S>& v) { model_->append(k, v); }
  void append(const Input<S>& k, const Input<S>& v, const Input<S>& log_weights) {
    model_->append(k, v, log_weights);
  }
  Matrix<S> read(const Input<S>& q, Index first = 0) const { return model_->read(q, first); }
  AttentionStatus read(const Input<S>& q, const Output<S>& out, Index first = 0) const {
    return model_->read(q, out, first);
  }
  Partial<S> read_partial(const Input<S>& q, Index first = 0) const { return model_->read_partial(q, first); }
  Matrix<S> advance(const Input<S>& q, const Input<S>& k, const Input<S>& v) {
    return model_->advance(q, k, v);
  }
  AttentionStatus advance(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out) {
    return model_->advance(q, k, v, out);
  }
  /// Of the same kind.
  void merge(const Memory& other) { model_->merge(*other.model_); }
  Index size() const { return model_->size(); }
  Index value_dimension() const { return model_->value_dimension(); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual std::unique_ptr<Concept> clone() const = 0;
    virtual void append(const Input<S>& k, const Input<S>& v) = 0;
    virtual void append(const Input<S>& k, const Input<S>& v, const Input<S>& log_weights) = 0;
    virtual Matrix<S> read(const Input<S>& q, Index first) const = 0;
    virtual AttentionStatus read(const Input<S>& q, const Output<S>& out, Index first) const = 0;
    virtual Partial<S> read_partial(const Input<S>& q, Index first) const = 0;
    virtual Matrix<S> advance(const Input<S>& q, const Input<S>& k, const Input<S>& v) = 0;
    virtual AttentionStatus advance(const Input<S>& q, const Input<S>& k, const Input<S>& v,
                                    const Output<S>& out) = 0;
    virtual void merge(const Concept& other) = 0;
    virtual Index size() const = 0;
    virtual Index value_dimension() const = 0;
  };

  template <class M>
  struct Model;

  std::unique_ptr<Concept> model_;
};

static_assert(phiattn::Memory<Memory<float>> && phiattn::Memory<Memory<double>>);

template <class S>
struct Case {
  std::string name;
  bool positive;         // no weight is negative
  bool needs_dimension;  // refuses keys without dimensions: kernels do not

  /// The similarity by its formula, in long double.
  std::function<oracle::Similarity(Index d)> expected;
  /// phiattn::attention
  std::function<AttentionStatus(const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                                const AttentionOptions& options)>
      attention;
  /// phiattn::attention_weights
  std::function<Matrix<S>(const Input<S>& q, const Input<S>& k, const AttentionOptions& options)> weights;
  /// The memory that the similarity implies.
  std::function<Memory<S>(Index d, Index dv, const AttentionOptions& options)> memory;
};

template <class S>
std::vector<Case<S>> kernels();
template <class S>
std::vector<Case<S>> random_features();
template <class S>
std::vector<Case<S>> taylor_features();
template <class S>
std::vector<Case<S>> exponential_limit_features();
template <class S>
std::vector<Case<S>> elu_features();
template <class S>
std::vector<Case<S>> distance_kernels();
template <class S>
std::vector<Case<S>> elementwise_features();
template <class S>
std::vector<Case<S>> nystrom_features();
template <class S>
std::vector<Case<S>> fourier_features();
template <class S>
std::vector<Case<S>> sketches();
template <class S>
std::vector<Case<S>> dijiang_features();
template <class S>
std::vector<Case<S>> wrapped_maps();
template <class S>
std::vector<Case<S>> memories();

/// Every similarity.
template <class S>
const std::vector<Case<S>>& all_cases() {
  static const std::vector<Case<S>> cases = [] {
    std::vector<Case<S>> all;
    for (const auto& family :
         {kernels<S>, random_features<S>, taylor_features<S>, exponential_limit_features<S>, elu_features<S>,
          distance_kernels<S>, elementwise_features<S>, nystrom_features<S>, fourier_features<S>, sketches<S>,
          dijiang_features<S>, wrapped_maps<S>, memories<S>}) {
      for (auto& one : family()) all.push_back(std::move(one));
    }
    return all;
  }();
  return cases;
}

}  // namespace laws
