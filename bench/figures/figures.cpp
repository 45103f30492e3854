// The claims of the texts about attention as a kernel: computed as tables for gnuplot, and judged.
//
//     figures [--full] [--out FOLDER] [--only 1,3,...]
//
// Writes FOLDER/*.csv and FOLDER/claims.md, and prints the claims. `sh cmake/run.sh figures` also draws. --full: more
// seeds, longer sequences. The rooms: support/lab.hpp, support/maps.hpp, a file for each figure, draw/ for gnuplot.
#include <charconv>
#include <chrono>
#include <exception>
#include <set>
#include <string_view>

#include "support/lab.hpp"

namespace {

using namespace figures;

constexpr const char* kUsage = "usage: figures [--full] [--out FOLDER] [--only 1,3,...]\n";

struct Figure {
  const char* title;
  void (*compute)(const Options&, Claims&);
};

// The second is timed, and has the machine to itself as the others have.
constexpr Figure kFigures[] = {{"error against features", error_by_features},
                               {"time against length", time_by_length},
                               {"error against degree", error_by_degree},
                               {"rank against length", rank_by_length},
                               {"dimension against length, sparse patterns", dimension_by_length},
                               {"kernels in the plane", kernels_in_the_plane},
                               {"real heads", real_heads}};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::set<std::size_t> numbers(std::string_view list) {
  std::set<std::size_t> chosen;
  while (!list.empty()) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), number);
    if (error != std::errc() || number < 1 || number > std::size(kFigures)) {
      throw UsageError(text("--only: expected numbers of figures from 1 to %zu", std::size(kFigures)));
    }
    chosen.insert(number);
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    if (list.starts_with(',')) list.remove_prefix(1);
  }
  return chosen;
}

void run(int argc, char** argv) {
  Options options;
  std::set<std::size_t> only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw UsageError(std::string(flag).append(": expected a value behind it"));
      return argv[++i];
    };
    if (flag == "--full") {
      options.full = true;
    } else if (flag == "--out") {
      options.out = value();
    } else if (flag == "--only") {
      only = numbers(value());
    } else {
      throw UsageError(std::string("unknown argument ").append(flag));
    }
  }
  std::filesystem::create_directories(options.out);

  Claims claims;
  for (std::size_t i = 1; i <= std::size(kFigures); ++i) {
    if (!only.empty() && !only.contains(i)) continue;
    const auto start = std::chrono::steady_clock::now();
    kFigures[i - 1].compute(options, claims);
    std::printf("Figure %zu, %s: %.0f s\n\n", i, kFigures[i - 1].title,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::fflush(stdout);
  }
  claims.write(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "figures: %s\n%s", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "figures: %s\n", error.what());
    return 1;
  }
}
