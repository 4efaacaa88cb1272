#!/usr/bin/env python3
"""Checks the figures of `herd run --runs 200 --seed 1 --format json` (stdin).

With --wire those of `herd run --wire --format json`.
"""

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


# One run in real time. Where chance decides, the ends are the lowest and the highest figure of
# 10,000 runs in virtual time. Where it does not, one end is exact and the other allows for a
# machine that stands still for a while: a token comes every 100 ms, so a wave that arrives over
# more than that gets one more, and each wave of the SDK's starts as late as the one before ended.
# The limiter's counts allow for nothing. Answers may come half a second later than in virtual time,
# the limiter's 0.3 s.
LATE = 0.5
WIRE = [
    ("none", "ok", 20, 21),
    ("none", "requests", 100, 100),
    ("none", "last_s", 0.0, 0.0 + LATE),
    ("llm-retry-3", "ok", 36, 37),
    ("llm-retry-3", "requests", 254, 255),
    ("llm-retry-3", "last_s", 1.55, 1.65 + LATE),
    ("anthropic-sdk", "ok", 40, 42),
    ("anthropic-sdk", "requests", 248, 250),
    ("anthropic-sdk", "last_s", 2.0, 2.0 + LATE),
    ("llm-retry-8", "ok", 100, 100),
    ("llm-retry-8", "requests", 372, 380),
    ("llm-retry-8", "last_s", 15.8, 16.9 + LATE),
    ("llm-retry-8", "p95_s", 15.2, 16.6 + LATE),
    ("full-jitter", "ok", 99, 100),
    ("full-jitter", "requests", 395, 431),
    ("full-jitter", "last_s", 9.5, 37.6 + LATE),
    ("full-jitter", "p95_s", 7.9, 18.3 + LATE),
    ("retry-after", "ok", 100, 100),
    ("retry-after", "requests", 310, 322),
    ("retry-after", "last_s", 8.6, 20.9 + LATE),
    ("retry-after", "p95_s", 7.6, 12.0 + LATE),
    ("limiter", "ok", 100, 100),
    ("limiter", "requests", 100, 100),
    ("limiter", "rejected", 0, 0),
    ("limiter", "last_s", 8.0, 8.3),
    ("holdoff", "ok", 100, 100),
    ("holdoff", "requests", 272, 286),
    ("holdoff", "last_s", 8.0, 23.5 + LATE),
    ("holdoff", "p95_s", 7.6, 12.8 + LATE),
]


def main() -> int:
    is_wire = sys.argv[1:] == ["--wire"]
    bands, runs = (WIRE, 1) if is_wire else (BANDS, 200)
    rows = {row["strategy"]: row for row in json.load(sys.stdin)}
    failures = 0
    for strategy, figure, least, most in bands:
        sample = rows[strategy][figure]
        values = [sample["median"]]
        if least == most:
            values += [sample["p5"], sample["p95"]]
        within = all(least <= value <= most for value in values)
        failures += not within
        verdict = "ok" if within else "OUT OF BAND"
        print(f"{strategy:14} {figure:9} {values[0]:>8} in [{least}, {most}]  {verdict}")
    for strategy, row in rows.items():
        if row["runs"] != runs or row["floor_s"] != 8.0:
            print(f"{strategy}: {row['runs']} runs, floor {row['floor_s']} s")
            failures += 1
        # Of medians this need not be true; of one run it must: who is not rejected is done.
        if is_wire and row["requests"]["median"] - row["rejected"]["median"] != row["ok"]["median"]:
            print(f"{strategy}: requests, less those rejected, are not those that are ok")
            failures += 1
    expected = {strategy for strategy, *_ in bands} | {"holdoff"}
    if set(rows) != expected:
        print(f"rows: {sorted(rows)}")
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
