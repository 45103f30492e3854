#!/bin/sh
# From a fresh clone to a result:  sh cmake/run.sh demo|test|asan|fuzz|tsan|valgrind|mutants|speed|bench|figures [arguments of the program]
set -eu

say() { printf '\n== %s\n' "$*"; }
works() { "$@" >/dev/null 2>&1; }

has_cmake() { cmake --workflow --list-presets; }  # 3.25 or newer
has_builder() { command -v ninja || command -v make; }
has_compiler() { echo '#include <concepts>' | ${CXX:-c++} -std=c++20 -fsyntax-only -x c++ -; }
has_fuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer -x c++ - -o /dev/null
}
is_debian() { command -v apt-get && command -v dpkg; }

task=${1-}
case $task in
  demo) program=examples/compare packages= ;;
  test | asan | mutants | tsan) program= packages='catch2 nlohmann-json3-dev' ;;
  valgrind) program= packages='catch2 nlohmann-json3-dev valgrind' ;;
  fuzz) program= packages=$(works has_fuzzer || echo clang libclang-rt-dev) ;;
  bench) program=bench/attention_bench packages=libbenchmark-dev ;;
  speed) program=bench/against_plain_eigen packages=libbenchmark-dev ;;
  figures) program=bench/figures/figures packages=$(works command -v gnuplot || echo gnuplot-nox) ;;
  *)
    echo "usage: sh $0 demo|test|asan|fuzz|tsan|valgrind|mutants|speed|bench|figures [arguments of the program]
  demo   build and run the comparison of softmax and linear attention and, without arguments, a language model
         with either (language_model --quick)
  test   build and run the tests
  asan   the same under address and undefined-behaviour sanitizers
  fuzz   random calls, memories and files against their definitions, under the same sanitizers, with clang
  tsan   what threads share, under the thread sanitizer
  valgrind  the same and a few goldens, under valgrind
  mutants  seeded faults, one at a time, and whether the tests notice; a part of a name takes those alone
  speed  the main cases beside plain Eigen and the machine's peak
  bench  every similarity over many shapes, by Google Benchmark
  figures  compute the claims and, if there is gnuplot, draw them, in build/figures/results; --full takes longer" >&2
    exit 2
    ;;
esac
shift
root=$(cd "$(dirname "$0")/.." && pwd)
cores=$(getconf _NPROCESSORS_ONLN)

missing=
(cd "$root" && works has_cmake) || missing="$missing cmake"
works has_builder || missing="$missing ninja-build"
works has_compiler || missing="$missing g++"
if works is_debian; then
  for package in libeigen3-dev $packages; do
    works dpkg -s "$package" || missing="$missing $package"
  done
fi

if [ -n "$missing" ]; then
  if [ "$(id -u)" -eq 0 ]; then as_root=env; else as_root='sudo -n'; fi
  if works is_debian && works $as_root true; then
    say "Installing$missing"
    $as_root apt-get update -q &&
      $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing ||
      say 'Not everything could be installed'
  else
    say "Missing here:$missing (cmake must be 3.25 or newer, the compiler speak C++20)"
  fi
  # What CMake does not find, it fetches.
fi

export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$cores}"
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$cores}"
if works command -v ninja; then export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}"; fi

if [ "$task" = mutants ]; then exec sh "$root/tests/mutants/run.sh" "$@"; fi

say "Building in $root/build/$task"
(cd "$root" && cmake --workflow --preset "$task")
if [ -n "$program" ]; then
  say "Running $program $*"
  if [ "$task" = figures ]; then set -- --out "$root/build/figures/results" "$@"; fi
  "$root/build/$task/$program" "$@"
fi
if [ "$task" = figures ]; then
  if works command -v gnuplot; then
    say "Drawing $root/build/figures/results"
    sh "$root/bench/figures/draw.sh" "$root/build/figures/results"
  else
    say "No gnuplot: the tables are in $root/build/figures/results"
  fi
fi
if [ "$task" = demo ] && [ $# -eq 0 ]; then
  say 'Running examples/language_model --quick'
  "$root/build/$task/examples/language_model" --quick
fi
