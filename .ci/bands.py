#!/usr/bin/env python3
"""Checks the figures of `herd run --runs 200 --seed 1 --format json` (stdin)."""

import json
import sys

# (strategy, figure, least, most): medians must lie within; where both ends are equal, the 5th and
# 95th percentile must be that too (the crate's own tests look at every run). The bands are the 5th
# to 95th percentiles of an independent model of the set-up.
BANDS = [
    ("none", "ok", 20, 20),
    ("none", "requests", 100, 100),
    ("none", "rejected", 80, 80),
    ("none", "last_s", 0.0, 0.0),
    ("llm-retry-3", "ok", 36, 36),
    ("llm-retry-3", "requests", 255, 255),
    ("llm-retry-3", "rejected", 219, 219),
    ("llm-retry-3", "last_s", 1.55, 1.65),
    ("anthropic-sdk", "ok", 40, 40),
    ("anthropic-sdk", "requests", 250, 250),
    ("anthropic-sdk", "rejected", 210, 210),
    ("anthropic-sdk", "last_s", 2.0, 2.0),
    ("llm-retry-8", "ok", 100, 100),
    ("llm-retry-8", "requests", 374, 377),
    ("llm-retry-8", "last_s", 16.3, 16.8),
    ("llm-retry-8", "p95_s", 15.6, 16.3),
    ("full-jitter", "ok", 100, 100),
    ("full-jitter", "requests", 406, 419),
    ("full-jitter", "last_s", 11.9, 22.3),
    ("full-jitter", "p95_s", 9.2, 12.2),
    ("retry-after", "ok", 100, 100),
    ("retry-after", "requests", 312, 318),
    ("retry-after", "last_s", 9.6, 14.1),
    ("retry-after", "p95_s", 8.3, 9.7),
    ("limiter", "ok", 100, 100),
    ("limiter", "requests", 100, 100),
    ("limiter", "rejected", 0, 0),
    ("limiter", "last_s", 8.0, 8.0),
]


def main() -> int:
    rows = {row["strategy"]: row for row in json.load(sys.stdin)}
    failures = 0
    for strategy, figure, least, most in BANDS:
        sample = rows[strategy][figure]
        values = [sample["median"]]
        if least == most:
            values += [sample["p5"], sample["p95"]]
        within = all(least <= value <= most for value in values)
        failures += not within
        verdict = "ok" if within else "OUT OF BAND"
        print(f"{strategy:14} {figure:9} {values[0]:>8} in [{least}, {most}]  {verdict}")
    for strategy, row in rows.items():
        if row["runs"] != 200 or row["floor_s"] != 8.0:
            print(f"{strategy}: {row['runs']} runs, floor {row['floor_s']} s")
            failures += 1
    expected = {strategy for strategy, *_ in BANDS} | {"holdoff"}
    if set(rows) != expected:
        print(f"rows: {sorted(rows)}")
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
