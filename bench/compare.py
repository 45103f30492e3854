#!/usr/bin/env python3
"""Compares two runs of attention_bench and flags what changed beyond the noise.

    attention_bench --benchmark_repetitions=9 --benchmark_out=before.json
    attention_bench --benchmark_repetitions=9 --benchmark_out=after.json
    bench/compare.py before.json after.json

Of each case it takes the fraction of the FMA peak of its own run, so that a slower machine is no change, and compares
medians over the repetitions. A change counts if it exceeds 5 % and three times the larger median absolute deviation.
Exit status 1 if something became slower.
"""

import json
import statistics
import sys


def fractions_of_peak(path):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["benchmarks"]
    samples = {}
    for row in rows:
        if row.get("run_type", "iteration") == "iteration":
            samples.setdefault(row["run_name"], []).append(row["peak"])
    return samples


def spread(samples):
    centre = statistics.median(samples)
    return statistics.median(abs(x - centre) for x in samples)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    before, after = map(fractions_of_peak, sys.argv[1:])
    for name in sorted(before.keys() ^ after.keys()):
        print(f"only in {sys.argv[1] if name in before else sys.argv[2]}: {name}")
    slower = 0
    for name in sorted(before.keys() & after.keys()):
        old, new = (statistics.median(x[name]) for x in (before, after))
        noise = 3 * max(spread(before[name]), spread(after[name])) / old
        change = new / old - 1
        if abs(change) <= max(0.05, noise):
            continue
        slower += change < 0
        print(f"{'faster' if change > 0 else 'SLOWER'} {change:+7.1%} (noise {noise:.1%})  {name}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
