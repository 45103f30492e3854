#include "support/case_of.hpp"

namespace laws {

template <class S, class Tag>
Case<S> case_of_any_map(std::string name, bool positive,
                        std::function<phiattn::AnyFeatureMap<S, Tag>(Index d)> make,
                        std::function<oracle::Similarity(Index)> expected) {
  return {std::move(name),
          positive,
          true,
          std::move(expected),
          [make](const Input<S>& q, const Input<S>& k, const Input<S>& v, const Output<S>& out,
                 const AttentionOptions& options) {
            return phiattn::attention(make(q.cols()), q, k, v, out, options);
          },
          [make](const Input<S>& q, const Input<S>& k, const AttentionOptions& options) {
            return phiattn::attention_weights(make(q.cols()), q, k, options);
          },
          [make](Index d, Index dv, const AttentionOptions& options) {
            return Memory<S>(phiattn::LinearState(make(d), dv, phiattn::detail::memory_options(options)));
          }};
}

template <class S, class Tag>
using MakeAny = std::function<phiattn::AnyFeatureMap<S, Tag>(Index)>;
using Formula = std::function<oracle::Similarity(Index)>;

template Case<float> case_of_any_map(std::string, bool, MakeAny<float, phiattn::LogFeatureMapTag>, Formula);
template Case<double> case_of_any_map(std::string, bool, MakeAny<double, phiattn::LogFeatureMapTag>, Formula);
template Case<float> case_of_any_map(std::string, bool, MakeAny<float, phiattn::SignedFeatureMapTag>,
                                     Formula);
template Case<double> case_of_any_map(std::string, bool, MakeAny<double, phiattn::SignedFeatureMapTag>,
                                      Formula);

}  // namespace laws
