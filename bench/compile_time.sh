#!/bin/sh
# What a translation unit pays for phiattn, beside one that includes <Eigen/Core> and multiplies two matrices.
#
#     sh bench/compile_time.sh [--runs N] [--check] [-- FLAGS]
#
# CXX is the compiler (c++), FLAGS are where Eigen is (by default what pkg-config says). All are compiled with -O2.
# PHIATTN_COMPILED_FLAGS is what linking phiattn::compiled adds to a command line; without it that row is left out.
#
# CPU seconds (user and system, medians of N interleaved runs) vary with the machine. The compiler's own memory, which
# g++ tells with -ftime-report, does not: --check measures that alone, and if it is above a budget says which headers and
# instantiations are dearest, and fails.
set -eu
export LC_ALL=C

root=$(cd "$(dirname "$0")/.." && pwd)
compiler=${CXX:-c++}
runs=5
check=
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=${2:?--runs: expected a number behind it}; shift ;;
    --check) check=yes ;;
    --) shift; break ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
if [ $# -eq 0 ]; then
  set -- $(pkg-config --cflags eigen3 2>/dev/null || echo -I/usr/include/eigen3)
fi

# Memory that a row may take, as a ratio to Eigen.
budget_of() {
  case $1 in
    include-only) echo 1.35 ;;
    quickstart) echo 3.2 ;;
  esac
}

files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$files/eigen.cpp" <<'source'
#include <Eigen/Core>
int main() {
  Eigen::MatrixXf a = Eigen::MatrixXf::Random(3, 3), b = a * a;
  return b(0, 0) > 0;
}
source
printf '#include <phiattn/phiattn.hpp>\nint main() {}\n' >"$files/include-only.cpp"
cp "$root/examples/narrow_includes.cpp" "$files/narrow.cpp"
cp "$root/examples/quickstart.cpp" "$files/quickstart.cpp"
cp "$root/examples/quickstart.cpp" "$files/compiled.cpp"

has_memory=yes
if echo | "$compiler" -dM -E -x c++ - | grep -q __clang__; then has_memory=; fi
rows="eigen include-only narrow quickstart${PHIATTN_COMPILED_FLAGS:+ compiled}"
if [ "$check" ]; then
  [ "$has_memory" ] || { echo "$compiler does not tell its memory: --check is for g++" >&2; exit 2; }
  rows='eigen include-only quickstart'
fi

compile() {  # <row> [flags]
  row=$1
  shift
  if [ "$row" = compiled ]; then set -- $PHIATTN_COMPILED_FLAGS "$@"; fi
  "$compiler" -std=c++20 -O2 -I"$root/include" "$@" -c "$files/$row.cpp" -o "$files/$row.o"
}

# MiB, of what g++ -ftime-report says. Its units are none, k, M and G.
memory_in_report() {
  awk '/^ *TOTAL/ { unit = $NF; sub(/^[0-9.]*/, "", unit)
                    print $NF * (unit == "G" ? 1024 : unit == "M" ? 1 : unit == "k" ? 1 / 1024 : 1 / 1048576) }'
}

measure_memory() {  # <row> [flags]
  compile "$@" -ftime-report 2>"$files/report" || { head -n 30 "$files/report" >&2; exit 1; }
  memory_in_report <"$files/report" >"$files/$1.memory"
}

# The second line of `times` is of the children: 0m1.25s 0m0.10s, user and system.
measure_seconds() {  # <row> [flags]
  (compile "$@" && times) >"$files/report" || exit 1
  awk 'NR == 2 { split($1, user, "[ms]"); split($2, kernel, "[ms]")
                 print 60 * (user[1] + kernel[1]) + user[2] + kernel[2] }' "$files/report" >>"$files/$1.seconds"
}

median() { sort -n "$1" | awk '{ x[NR] = $1 } END { if (NR) print (x[int((NR + 1) / 2)] + x[int(NR / 2 + 1)]) / 2 }'; }

# Memory and time apart from each other: reporting slows the compiler.
for row in $rows; do
  : >"$files/$row.memory" >"$files/$row.seconds"
  if [ "$has_memory" ]; then measure_memory "$row" "$@"; fi
done
[ "$check" ] && runs=0
while [ "$runs" -gt 0 ]; do
  for row in $rows; do measure_seconds "$row" "$@"; done
  runs=$((runs - 1))
done

above=
echo "| $("$compiler" --version | head -n 1), -O2 | CPU [s] | ratio | memory [MiB] | ratio |"
echo '|---|---|---|---|---|'
for row in $rows; do
  awk -v row="$row" -v budget="$(budget_of "$row")" \
    -v seconds="$(median "$files/$row.seconds")" -v memory="$(cat "$files/$row.memory")" \
    -v seconds_of_eigen="$(median "$files/eigen.seconds")" -v memory_of_eigen="$(cat "$files/eigen.memory")" 'BEGIN {
      printf "| %s |", row
      if (seconds != "") printf " %.2f | %.2f |", seconds, seconds / seconds_of_eigen; else printf " | |"
      if (memory != "") printf " %.0f | %.2f |", memory, memory / memory_of_eigen; else printf " | |"
      above = budget != "" && memory > budget * memory_of_eigen
      print above ? " above its budget, " budget : ""
      exit above
    }' || above="$above $row"
done
[ "$check" ] && [ "$above" ] || exit 0

echo
echo 'The dearest headers that phiattn.hpp includes, each alone with -fsyntax-only, MiB:'
sed -n 's/^#include <\(phiattn\/.*\)>.*/\1/p' "$root/include/phiattn/phiattn.hpp" | while read -r header; do
  echo "#include <$header>" | "$compiler" -std=c++20 -I"$root/include" "$@" -fsyntax-only -ftime-report -x c++ - 2>&1 |
    memory_in_report | sed "s|\$| $header|"
done | sort -rn | head -n 10

for row in $above; do
  echo
  if ! command -v clang++ >/dev/null; then
    echo "No clang++: it would tell the dearest instantiations of $row."
    continue
  fi
  echo "The dearest instantiations of $row by clang++, with all that they instantiate, ms:"
  clang++ -std=c++20 -I"$root/include" "$@" -ftime-trace -c "$files/$row.cpp" -o "$files/$row.o"
  awk '{ gsub(/\{"pid"/, "\n&"); print }' "$files/$row.json" | grep '"name":"Instantiate' |
    sed 's/.*"dur":\([0-9]*\),.*"detail":"\([^"]*\)".*/\1 \2/' | sort -rn | head -n 10 |
    awk '{ $1 = sprintf("%.0f", $1 / 1000); print }'
done
exit 1
