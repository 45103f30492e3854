#!/bin/sh
# Whether the tests notice:  sh cmake/run.sh mutants [part of a name]
# Puts the faults of table.txt, one at a time, into a copy of the headers, and runs the tests that ought to fail. Succeeds
# if all do, and if every fault is where the table says.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/mutants
include=$build/include
wanted=${1-}
log=$build/log
mkdir -p "$include"

# The headers as they are; a file that is the same keeps its time, and what was built from it.
sync_headers() {
  (cd "$root/include" && find . -type f) | while IFS= read -r file; do
    mkdir -p "$(dirname "$include/$file")"
    cmp -s "$root/include/$file" "$include/$file" || cp "$root/include/$file" "$include/$file"
  done
}

# old, new: the header in $1 with the one place changed. Fails with how often it was found otherwise.
changed() {
  old=$old new=$new awk '
    { line = $0
      while ((at = index(line, ENVIRON["old"])) > 0) {
        ++found
        printf "%s%s", substr(line, 1, at - 1), ENVIRON["new"]
        line = substr(line, at + length(ENVIRON["old"]))
      }
      print line }
    END { if (found != 1) { print "found " found + 0 " times" > "/dev/stderr"; exit 1 } }' "$1"
}

target_of() { echo "$1" | tr / _; }
built() { cmake --build "$build" --target "$(target_of "$1")" >"$log" 2>&1; }
passes() { timeout 300 "$build/$(target_of "$1")" --rng-seed 2021 --abort >"$log" 2>&1; }

# Without a fault all must pass, or failing would say nothing.
check_sound() {
  case " $sound " in *" $1 "*) return 0 ;; esac
  built "$1" || { tail -30 "$log"; echo "$1 does not compile"; exit 1; }
  passes "$1" || { tail -30 "$log"; echo "$1 fails without any fault"; exit 1; }
  sound="$sound $1"
}

killed=0 survived=0 equivalent=0 broken=0 sound=

report() { printf '%-9s %s%s\n' "$1" "$name" "${2:+  ($2)}"; }

try_mutant() {
  case $name in *"$wanted"*) ;; *) return 0 ;; esac
  header=$root/include/phiattn/$file
  if ! problem=$(changed "$header" 2>&1 >"$build/mutant"); then
    broken=$((broken + 1))
    report BROKEN "in $file its text is $problem: $old"
    return 0
  fi
  if [ "$tests" = equivalent ]; then
    equivalent=$((equivalent + 1))
    report same "$says"
    return 0
  fi
  for test in $tests; do check_sound "$test"; done
  cp "$build/mutant" "$include/phiattn/$file"
  by=
  for test in $tests; do
    if ! built "$test"; then
      by=compiler
      break
    elif ! passes "$test"; then
      by=$test
      break
    fi
  done
  cp "$header" "$include/phiattn/$file"
  if [ "$by" = compiler ]; then
    broken=$((broken + 1))
    report BROKEN "it does not compile: $(grep -m1 'error:' "$log")"
  elif [ -n "$by" ]; then
    killed=$((killed + 1))
    report killed "by $by"
  else
    survived=$((survived + 1))
    report SURVIVED "not noticed by $tests: $says"
  fi
}

sync_headers
cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DPHIATTN_INCLUDE_DIR="$include" >"$log" 2>&1 ||
  { cat "$log"; exit 1; }

name=
while IFS= read -r line <&3; do
  case $line in
    'mutant '*) name=${line#mutant } ;;
    'in     '*) file=${line#in     } ;;
    'old    '*) old=${line#old    } ;;
    'new    '*) new=${line#new    } ;;
    'says   '*) says=${line#says   } ;;
    'kill   '*)
      tests=${line#kill   }
      try_mutant
      ;;
  esac
done 3<"$here/table.txt"

echo "$killed killed, $survived survived, $equivalent equivalent, $broken broken"
[ "$survived" -eq 0 ] && [ "$broken" -eq 0 ]
