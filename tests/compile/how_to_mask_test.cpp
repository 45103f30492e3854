// How to add a mask: the README's, held to its definition row by row.
#include <phiattn/analysis/error.hpp>
#include <phiattn/attention/attention.hpp>
#include <phiattn/kernels/exponential.hpp>

#include "support/catch.hpp"

namespace pa = phiattn;

namespace {

struct DocumentMask {  // row i sees its own document of so many tokens, up to itself
  pa::Index tokens;
  pa::KeyRange keys(pa::Index row, pa::Index n_k) const {
    const pa::Index end = std::min(row + 1, n_k);
    return {std::min(row / tokens * tokens, end), end};
  }
};
static_assert(pa::Mask<DocumentMask>);

}  // namespace

TEST_CASE("a mask of one's own takes a class with one verb") {
  const pa::Matrix<float> x = pa::Matrix<float>::Random(50, 6);
  pa::Matrix<float> out(50, 6);
  pa::attention(pa::ExponentialKernel<float>(), x, x, x, out, DocumentMask{16});
  for (pa::Index first = 0; first < 50; first += 16) {
    const auto document = x.middleRows(first, std::min<pa::Index>(16, 50 - first));
    const auto due = pa::attention(pa::ExponentialKernel<float>(), document, document, document,
                                   {.causality = pa::Causality::causal});
    CHECK(pa::maximal_error(out.middleRows(first, document.rows()), due) < 1e-5);
  }
}
