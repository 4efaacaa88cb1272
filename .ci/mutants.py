#!/usr/bin/env python3
"""Runs the models, then breaks the core in one place after another: a model must fail on each.

A model that passes on everything proves nothing. Each mutant names the model that refutes it.
Usage: mutants.py [NAME ...], from anywhere in the checkout; with names, only those mutants.
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
    "burst-by-store": (*STORE_BLINDLY, "limiter::three_threads"),
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
        "                self.toll().refund();\n",
        "                let _ = self.toll();\n",
        "call::of_two_calls",
    ),
    "charge-kept": (
        SRC / "call.rs",
        "        if !core::mem::take(&mut self.is_charged) {\n",
        "        if !self.is_charged {\n",
        "call::of_two_failures",
    ),
    "change-unclaimed": (
        SRC / "limiter.rs",
        "            _ => Next::Keep(Err(ChangeUnderWay)),\n",
        "            _ => Next::Store(pause, Ok(())),\n",
        "limiter::a_pause_lets_no",
    ),
    "slot-unchecked": (
        SRC / "limiter.rs",
        "            if slot >> TAG_SHIFT != tag {\n",
        "            if slot == 0 {\n",
        "limiter::whoever_looks",
    ),
    "slot-by-store": (*STORE_BLINDLY, "table::a_slot_goes"),
    "key-unchecked": (
        SRC / "table.rs",
        "            (slot.key.load() == key).then_some(entry)\n",
        "            Some(entry)\n",
        "table::a_slot_goes",
    ),
    "put-without-a-second-look": (
        SRC / "table.rs",
        "        let entry = match self.find(now, key) {\n",
        "        let entry = match None {\n",
        "table::a_key_that_two",
    ),
}


def cargo_test(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["cargo", "test", "-q", "-p", "holdoff", "--test", "loom", "--profile", "loom"]
    # Not a directory the checkout uses: cargo would take a mutant's build for the checkout's own.
    target = ROOT / "target" / "mutants" / "target"
    env = os.environ | {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(target)}
    return subprocess.run(
        [*command, *arguments], cwd=COPY, env=env, capture_output=True, text=True, check=False
    )


def fresh_copy() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for part in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / part, COPY / part)
    for part in ("core", "adapter-tokio", "herd"):
        # `copy` gives files a new date, so that cargo sees that the last mutant is gone.
        shutil.copytree(ROOT / part, COPY / part, copy_function=shutil.copy)


def objection(name: str) -> str | None:
    """What keeps the mutant from counting as refuted."""
    file, there, mutant, test = MUTANTS[name]
    original = (ROOT / file).read_text()
    if original.count(there) != 1:
        return f"does not apply: {file} has {original.count(there)} places for it, not one"
    (COPY / file).write_text(original.replace(there, mutant))
    built = cargo_test("--no-run")
    result = cargo_test("--", test)
    (COPY / file).write_text(original)
    if built.returncode != 0:
        return f"does not build:\n{built.stderr}"
    if result.returncode == 0:
        return f"SURVIVES {test}:\n{result.stdout}"
    # By one model, and by what that asserts: not by a signal or a limit of loom's.
    signs = ("0 passed; 1 failed;", "panicked at core/tests/loom/")
    if not all(sign in result.stdout for sign in signs):
        return f"stops {test}, but breaks no assertion of it:\n{result.stdout}{result.stderr}"
    return None


def main(names: list[str]) -> int:
    fresh_copy()
    if not names:
        result = cargo_test()
        print(result.stdout[-10_000:] + result.stderr[-10_000:], flush=True)
        if result.returncode != 0:
            return 1
    failed = False
    for name in names or MUTANTS:
        why_not = objection(name)
        print(f"{name:26}", why_not or f"refuted by {MUTANTS[name][3]}", flush=True)
        failed |= why_not is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
