// The heads that compare reads: shapes that fit together, and numbers that float can hold.

#include "../../examples/heads/inputs.hpp"

#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_file.hpp"

using examples::read_heads;
using phiattn::Index;
using phiattn::Matrix;
using support::TemporaryFile;

namespace {

/// A file of heads (n, d) that are all alike but for a number of their own: 0, 1, 2, ...
class File {
 public:
  File(const std::vector<Index>& leading, Index n, Index d) {
    std::vector<Matrix<double>> heads;
    Index count = 1;
    for (const Index side : leading) count *= side;
    for (Index h = 0; h < count; ++h) heads.push_back(Matrix<double>::Constant(n, d, static_cast<double>(h)));
    npy::write(file_.path(), heads, leading);
  }
  explicit File(const Matrix<double>& head) { npy::write(file_.path(), head); }

  std::string path() const { return file_.path().string(); }

 private:
  TemporaryFile file_;
};

void check_refused(const File& q, const File& k, const File& v, const File& bad, const std::string& message) {
  CAPTURE(message);
  CHECK_THROWS_WITH(read_heads(q.path(), k.path(), v.path()),
                    ContainsSubstring(bad.path()) && ContainsSubstring(message));
}

}  // namespace

TEST_CASE("inputs: heads of queries share those of keys, neighbour by neighbour and batch by batch") {
  const File q({2, 6}, 3, 4), k({2, 2}, 5, 4), v({2, 2}, 5, 1);
  const auto read = read_heads(q.path(), k.path(), v.path());
  CHECK(read.leading == std::vector<Index>{2, 6});
  REQUIRE(read.heads.size() == 12);
  const std::vector<double> due{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
  for (std::size_t h = 0; h < 12; ++h) {
    CAPTURE(h);
    CHECK(read.heads[h].q(0, 0) == static_cast<double>(h));
    CHECK(read.heads[h].k(4, 3) == due[h]);
    CHECK(read.heads[h].v(0, 0) == due[h]);
  }
  CHECK(read.heads[7].name.ends_with(" batch 1 head 1"));

  const File one({6}, 3, 4), shared({1}, 5, 4);
  CHECK(read_heads(one.path(), shared.path(), shared.path()).heads.size() == 6);
}

TEST_CASE("inputs: shapes that do not fit are refused by the files' names") {
  const File q({6}, 3, 4), k({2}, 5, 4), plain({}, 5, 4);
  check_refused(q, File({4}, 5, 4), File({4}, 5, 4), q, "a multiple");
  check_refused(k, q, q, k, "a multiple");
  check_refused(q, k, File({1}, 5, 4), k, "heads of keys and values");
  check_refused(q, plain, plain, plain, "numbers of dimensions");
  const File batches({2, 2}, 3, 4), batch({1, 2}, 5, 4);
  check_refused(batches, batch, batch, batches, "batches");
}

TEST_CASE("inputs: numbers that no map can work with are refused by the file's name") {
  const Matrix<double> ones = Matrix<double>::Ones(3, 2);
  const File good(ones);
  const auto with = [&](double x) {
    Matrix<double> bad = ones;
    bad(2, 1) = x;
    return File(bad);
  };
  for (const double x : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const File bad = with(x);
    for (int part = 0; part < 3; ++part) {
      check_refused(part == 0 ? bad : good, part == 1 ? bad : good, part == 2 ? bad : good, bad,
                    ": row 2: got a NaN or an infinity");
    }
  }
  const File huge = with(1e300);
  check_refused(huge, good, good, huge,
                "row 2: got the norm 1e+300, expected finite numbers of a norm less than");
  check_refused(good, huge, good, huge, "1.84e+19");
  check_refused(good, good, huge, huge, "3.4e+38");
  const File large = with(1e30);
  check_refused(large, good, good, large, "got the norm 1e+30");
  CHECK(read_heads(good.path(), good.path(), large.path()).heads.size() == 1);
}
