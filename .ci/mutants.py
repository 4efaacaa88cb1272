#!/usr/bin/env python3
"""Breaks a copy of the core in one place after another; a model must fail on each.

A model that passes on everything proves nothing. Each mutant names the model that refutes it.
Usage: mutants.py [NAME ...], from anywhere in the checkout.
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "mutants" / "checkout"
SRC = pathlib.Path("core/src")

# In the back end for models: a load and a store in place of the exchange.
BEFORE = "            self.0.fetch_add(more, Ordering::Relaxed);\n        }\n\n"
NAME = "        pub(crate) fn compare_exchange"
HEAD = NAME + "(&self, current: u64, new: u64) -> Result<(), u64> {\n"
ORDERINGS = "Ordering::AcqRel, Ordering::Acquire"
EXCHANGE = f"self.0.compare_exchange(current, new, {ORDERINGS}).map(|_| ())\n"
STORE = "let _ = current;\n            self.0.store(new, Ordering::Release);\n            Ok(())\n"
STORE_BLINDLY = (
    SRC / "sync.rs",
    BEFORE + HEAD + "            " + EXCHANGE,
    BEFORE + HEAD + "            " + STORE,
)

# name: (file, what is there, what is put there, the model that must fail)
MUTANTS = {
    "burst-by-store": (*STORE_BLINDLY, "limiter::"),
    "probe-by-store": (*STORE_BLINDLY, "breaker::of_those_who_come"),
    "trip-by-store": (*STORE_BLINDLY, "breaker::failures_at_once"),
    "withdraw-by-store": (*STORE_BLINDLY, "budget::retries_are_at_most"),
    "refund-by-store": (*STORE_BLINDLY, "budget::what_is_put_back"),
    "empty-drop": (
        SRC / "breaker/permit.rs",
        "        if self.role == Role::Probe {\n",
        "        if false {\n",
        "breaker::a_dropped_probe",
    ),
    "no-lease": (
        SRC / "breaker/word.rs",
        "lease, .. }) if lease > now =>",
        "lease, .. }) if lease > 0 =>",
        "breaker::a_silent_probe",
    ),
    "no-generation": (
        SRC / "breaker/word.rs",
        "    if fields.generation != generation || fields.mode == Mode::Disabled {\n",
        "    if generation > 1023 || fields.mode == Mode::Disabled {\n",
        "breaker::what_calls_from_before",
    ),
    "no-refund-at-admit": (
        SRC / "call.rs",
        "                    limiter.refund(self.cost);\n",
        "                    let _ = limiter;\n",
        "call::of_two_calls",
    ),
    "charge-kept": (
        SRC / "call.rs",
        "            Some(charge) => charge.spend(),\n",
        "            Some(charge) => drop(charge),\n",
        "call::of_two_failures",
    ),
    "change-unclaimed": (
        SRC / "limiter.rs",
        "            _ => Next::Keep(Err(ChangeUnderWay)),\n",
        "            _ => Next::Store(pause, Ok(())),\n",
        "limiter::",
    ),
    "slot-unchecked": (
        SRC / "limiter.rs",
        "            if slot >> TAG_SHIFT != tag {\n",
        "            if slot == 0 {\n",
        "limiter::whoever_looks",
    ),
}


def model(test: str) -> subprocess.CompletedProcess[str]:
    command = ["cargo", "test", "-q", "-p", "holdoff", "--test", "loom", "--release", "--", test]
    target = ROOT / "target" / "mutants" / "target"
    env = os.environ | {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(target)}
    return subprocess.run(command, cwd=COPY, env=env, capture_output=True, text=True, check=False)


def refuted(name: str) -> bool:
    file, there, mutant, test = MUTANTS[name]
    original = (ROOT / file).read_text()
    if original.count(there) != 1:
        sys.exit(f"{name}: {file} has {original.count(there)} places for the mutant, not one")
    (COPY / file).write_text(original.replace(there, mutant))
    result = model(test)
    (COPY / file).write_text(original)
    if "could not compile" in result.stderr:
        sys.exit(f"{name} does not compile:\n{result.stderr}")
    return result.returncode != 0


def main(names: list[str]) -> int:
    COPY.mkdir(parents=True, exist_ok=True)
    for part in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / part, COPY / part)
    for part in ("core", "adapter-tokio", "herd"):
        shutil.copytree(ROOT / part, COPY / part, dirs_exist_ok=True)
    survivors = []
    for name in names or MUTANTS:
        is_refuted = refuted(name)
        verdict = "refuted" if is_refuted else "SURVIVES"
        print(f"{name:20} {verdict} by {MUTANTS[name][3]}", flush=True)
        if not is_refuted:
            survivors.append(name)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
