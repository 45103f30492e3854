// What this machine can do, and how near the products inside attention come to it:
//
//     roofline
//
// FMA peak and exponentials a second on registers and L1, reading bandwidth by size of the buffer, and the products of
// linear (m = 256) and exact attention (d = dv = 64, chunks of 128) by the library and by Eigen, as fractions of the
// peak. All on one core, medians, each in turn with the peak.

#include "support/machine.hpp"

#include <phiattn/core/product.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

namespace pa = phiattn;
using pa::Index;
using pa::Matrix;

/// Bytes a second of summing a buffer of `bytes`.
double read_rate(std::size_t bytes) {
  const Matrix<float> x = Matrix<float>::Ones(1, static_cast<Index>(bytes / sizeof(float)));
  const int rounds = static_cast<int>(std::max<std::size_t>(1, (std::size_t{1} << 24) / bytes));
  const double seconds = bench::median_seconds(21, [&] {
    float sum = 0;
    for (int round = 0; round < rounds; ++round) {
      sum += x.sum();
      bench::keep(x);
    }
    bench::keep(sum);
  });
  return static_cast<double>(bytes) * rounds / seconds;
}

enum class Form { plain, transposed_left, transposed_right };

struct Shape {
  const char* name;
  Index n, k, m;
  Form form;
};

template <class S>
void product(const Shape& s) {
  const bool left = s.form == Form::transposed_left, right = s.form == Form::transposed_right;
  const Matrix<S> a = left ? Matrix<S>::Random(s.k, s.n) : Matrix<S>::Random(s.n, s.k);
  const Matrix<S> b = right ? Matrix<S>::Random(s.m, s.k) : Matrix<S>::Random(s.k, s.m);
  Matrix<S> out = Matrix<S>::Zero(s.n, s.m);
  const auto ours = [&] {
    if (left) {
      pa::detail::transposed_multiply_add<S>(a, b, out);
    } else if (right) {
      pa::detail::multiply_transposed<S>(a, b, out);
    } else {
      pa::detail::multiply<S>(a, b, out);
    }
  };
  const auto eigens = [&] {
    if (left) {
      out.noalias() += a.transpose() * b;
    } else if (right) {
      out.noalias() = a * b.transpose();
    } else {
      out.noalias() = a * b;
    }
  };
  std::vector<double> ratio_ours, ratio_eigen;
  for (int round = 0; round < 31; ++round) {
    const double flops = 2.0 * static_cast<double>(s.n * s.k * s.m);
    const double peak = bench::peak_flops<S>(3);
    ratio_ours.push_back(flops / bench::median_seconds(15, ours) / peak);
    ratio_eigen.push_back(flops / bench::median_seconds(15, eigens) / peak);
  }
  std::printf("%-34s %5td %5td %5td  %8.2f %8.2f\n", s.name, s.n, s.k, s.m, bench::median(ratio_ours),
              bench::median(ratio_eigen));
}

template <class S>
void describe(const char* scalar) {
  std::printf("\n%s: FMA peak %.0f GFLOP/s, %.2f G exponentials/s\n", scalar, bench::peak_flops<S>() / 1e9,
              bench::exp_rate<S>() / 1e9);
  std::printf("%-34s %5s %5s %5s  %8s %8s\n", "product, as a fraction of the peak", "rows", "depth", "cols",
              "phiattn", "Eigen");
  for (const Shape& s : {Shape{"features, X W'", 128, 64, 256, Form::plain},
                         Shape{"features, m = 1024", 128, 64, 1024, Form::plain},
                         Shape{"state, K'^T V", 256, 128, 64, Form::transposed_left},
                         Shape{"read, Q' S", 128, 256, 64, Form::plain},
                         Shape{"triangle, Q' K'^T", 64, 256, 64, Form::transposed_right},
                         Shape{"scores, Q K^T", 128, 64, 128, Form::transposed_right},
                         Shape{"weighted values, A V", 128, 128, 64, Form::plain}}) {
    product<S>(s);
  }
}

}  // namespace

int main() {
  std::printf("%s\n\nreading, GB/s:", Eigen::SimdInstructionSetsInUse());
  for (const int log_bytes : {14, 18, 22, 28}) {
    std::printf("  %d KiB: %.0f", 1 << (log_bytes - 10), read_rate(std::size_t{1} << log_bytes) / 1e9);
  }
  std::printf("\n");
  describe<float>("float");
  describe<double>("double");
}
