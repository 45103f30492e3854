#pragma once

// What the figures share: options, seeded data, samples over seeds, tables, claims.

#include <phiattn/core/matrix.hpp>
#include <phiattn/core/random.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace figures {

using phiattn::Index;
using phiattn::Matrix;
using phiattn::Vector;

struct Options {
  std::filesystem::path out = "figures";
  bool full = false;
};

/// Independent normals of standard deviation sigma; a stream for each matrix of a seed.
inline Matrix<double> gaussian(Index rows, Index cols, double sigma, std::uint64_t seed,
                               std::uint64_t stream) {
  const phiattn::Philox random(seed, stream);
  Matrix<double> x(rows, cols);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = sigma * random.normal(static_cast<std::uint64_t>(i));
  return x;
}

/// printf into a string.
[[gnu::format(printf, 1, 2)]] inline std::string text(const char* pattern, ...) {
  char buffer[512];
  std::va_list values;
  va_start(values, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, values);
  va_end(values);
  return buffer;
}

/// Numbers from several seeds.
struct Sample {
  std::vector<double> values;

  void add(double x) { values.push_back(x); }
  double size() const { return static_cast<double>(values.size()); }
  double mean() const {
    double sum = 0;
    for (const double x : values) sum += x / size();
    return sum;
  }
  /// The element at that share of the sorted sample.
  double quantile(double share) const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(std::lround(share * (size() - 1)))];
  }
  double median() const { return quantile(0.5); }
};

/// A file of comma-separated values under a line of names.
class Csv {
 public:
  Csv(const Options& options, const std::string& name, const std::string& names) : file_(options.out / name) {
    if (!file_) throw std::runtime_error((options.out / name).string() + ": cannot be written");
    file_ << names << '\n';
  }

  template <class... Values>
  void row(const Values&... values) {
    std::ostringstream line;
    line.precision(8);
    [[maybe_unused]] const char* comma = "";
    ((line << comma << values, comma = ","), ...);
    file_ << line.str() << '\n';
  }

 private:
  std::ofstream file_;
};

/// Calls work(0) ... work(count - 1) on all cores.
inline void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
}

/// Median, quartiles and mean: four columns. Errors can be heavy-tailed, and standard deviations then say little.
inline std::string columns(const Sample& sample) {
  return text("%.6g,%.6g,%.6g,%.6g", sample.median(), sample.quantile(0.25), sample.quantile(0.75),
              sample.mean());
}

/// Slope, and R^2, of the least squares line through points.
struct Line {
  Line(const std::vector<double>& x, const std::vector<double>& y) {
    const auto n = static_cast<Index>(x.size());
    const Eigen::Map<const Vector<double>> xs(x.data(), n), ys(y.data(), n);
    const Vector<double> dx = xs.array() - xs.mean(), dy = ys.array() - ys.mean();
    slope = dx.dot(dy) / dx.squaredNorm();
    intercept = ys.mean() - slope * xs.mean();
    r_squared = std::pow(dx.dot(dy), 2) / (dx.squaredNorm() * dy.squaredNorm());
  }
  double slope, intercept, r_squared;
};

/// A sentence of one of the texts, as a formula, and what became of it.
struct Claim {
  std::string source, claim, verdict, number, figure;
};

/// All of them: printed, and written as a table.
class Claims {
 public:
  /// Kept by text, in the order in which they come.
  void add(Claim claim) {
    const auto later = [&](const Claim& other) { return rank(claim.source) < rank(other.source); };
    claims_.insert(std::find_if(claims_.begin(), claims_.end(), later), std::move(claim));
  }

  void write(const Options& options) const {
    std::ofstream file(options.out / "claims.md");
    file << "| text | claim | verdict | measured | figure |\n|---|---|---|---|---|\n";
    for (const Claim& c : claims_) {
      for (const std::string& cell : {c.source, c.claim, c.verdict, c.number, c.figure})
        file << "| " << escaped(cell) << ' ';
      file << "|\n";
      std::printf("%-10s  %s\n            -> %s: %s  [figure %s]\n", c.source.c_str(), c.claim.c_str(),
                  c.verdict.c_str(), c.number.c_str(), c.figure.c_str());
    }
  }

 private:
  static std::size_t rank(const std::string& source) {
    constexpr const char* kSources[] = {"performer", "infinite", "sparse", "similarity"};
    return static_cast<std::size_t>(std::find(std::begin(kSources), std::end(kSources), source) -
                                    std::begin(kSources));
  }

  /// A bar would end the cell.
  static std::string escaped(const std::string& cell) {
    std::string result;
    for (const char c : cell) {
      if (c == '|') result += '\\';
      result += c;
    }
    return result;
  }

  std::vector<Claim> claims_;
};

// The figures, each of which writes its tables and adds to the claims.
void error_by_features(const Options& options, Claims& claims);     // 1
void time_by_length(const Options& options, Claims& claims);        // 2
void error_by_degree(const Options& options, Claims& claims);       // 3
void rank_by_length(const Options& options, Claims& claims);        // 4
void dimension_by_length(const Options& options, Claims& claims);   // 5
void kernels_in_the_plane(const Options& options, Claims& claims);  // 6
void real_heads(const Options& options, Claims& claims);            // 7

}  // namespace figures
