#!/usr/bin/env python3
"""Runs the models, then breaks the core in one place after another: a model must fail on each.

A model that passes on everything proves nothing. Each one names the mutants that it refutes.
Usage: mutants.py [NAME ...], from anywhere in the checkout; with names, only those mutants.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "mutants" / "checkout"
SRC = pathlib.Path("core/src")
MODELS = ROOT / "core/tests/loom"

# Seconds for a model to refute a mutant; it takes a few, but under some mutants it would never end.
LIMIT = 120


@dataclasses.dataclass
class Mutant:
    file: str
    # What is there once, and what is put there.
    edits: dict[str, str]


# In the back end for models: a load and a store in place of the exchange.
BEFORE = "            self.0.fetch_add(more, Ordering::Relaxed);\n        }\n\n"
NAME = "        pub(crate) fn compare_exchange"
HEAD = BEFORE + NAME + "(&self, current: u64, new: u64) -> Result<(), u64> {\n            "
ORDERINGS = "Ordering::AcqRel, Ordering::Acquire"
EXCHANGE = f"self.0.compare_exchange(current, new, {ORDERINGS}).map(|_| ())"
STORE = "let _ = current; self.0.store(new, Ordering::Release); Ok(())"

SECOND_TRY = "Err(actual) => current = actual,"
SECOND_TRY_BY_STORE = """Err(actual) => {
    if let Next::Store(new, result) = transition(actual) {
        while self.compare_exchange(self.load(), new).is_err() {}
        return result;
    }
    current = actual;
}"""

REFUND = "let _ = self.change(0, cost, Change::Refund);"
REFUND_BY_STORE = """let tat = self.update(|state| (None, state.tat));
self.update(|state| {
    let back = state.quota.interval.saturating_mul(u64::from(cost));
    (Some(tat.saturating_sub(back)), ())
});"""

CLAIM = "self.pause.update(|pause| match"
TAG = "let tag = self.word.load() >> TAG_SHIFT;"
TAG_AT_CLAIM = f"let tag = self.word.update(Next::Keep) >> TAG_SHIFT; {CLAIM}"

# How it was before a bit said that a change is under way.
NEW_SLOT = "self.slot(next).update(|_| Next::Store(quota.packed(next), ()));"
CLAIM_BY_SLOT = """let seen = self.slot(next).update(Next::Keep);
if seen >> TAG_SHIFT == next
    || self.slot(next).compare_exchange(seen, quota.packed(next)).is_err()
{
    return Err(ChangeUnderWay);
}"""

LEVEL = "self.word.update(|word| {\n            let from ="
LEVEL_BY_STORE = f"let word = self.word.update(Next::Keep); {LEVEL.replace('|word|', '|_|')}"
PAUSE_BEFORE_LEVEL = f"let paused = self.pause.update(Next::Keep); {LEVEL}"
RECOUNT = "let tat = recounted(from_when, word & TIME_MAX, from, quota);"
FROM_WHEN = "now.as_nanos().max(self.pause.load() & TIME_MAX)"

LEASE = "_ if is_free(word) || !is_before(now, end(word)) =>"
ENDLESS_LEASE = "_ if is_free(word) || phase(word) == Phase::Open && !is_before(now, end(word)) =>"

GENERATION = "if !counts(word, generation)"

CHANGE_OVER = "self.pause.update(|pause| Next::Store(pause & !CHANGING, ()))"
CHANGE_OVER_BY_STORE = """let pause = self.pause.update(Next::Keep);
self.pause.update(|_| Next::Store(pause & !CHANGING, ()))"""

LONGER = "let longer = pause & CHANGING | until;"
LONGER_ALONE = "let (pause, longer) = (pause & TIME_MAX, until);"

SECOND_LOOK = "if self.idle_at(upstream, slot, uses).is_none_or(|at| at > now) {"

UPDATE_TICKS = "self.latest.update(|latest| {"
COUNTER = "let counter = (self.source)();"
COUNTER_ONCE = "let counter = *once.get_or_insert_with(|| (self.source)());"

MUTANTS = {
    "exchange-by-store": Mutant("sync.rs", {HEAD + EXCHANGE: HEAD + STORE}),
    "second-try-by-store": Mutant("sync.rs", {SECOND_TRY: SECOND_TRY_BY_STORE}),
    # The limiter.
    "tokens-back-by-store": Mutant("limiter.rs", {REFUND: REFUND_BY_STORE}),
    "level-by-store": Mutant("limiter.rs", {LEVEL: LEVEL_BY_STORE}),
    "level-not-recounted": Mutant("limiter.rs", {RECOUNT: "let tat = word & TIME_MAX;"}),
    "slot-unchecked": Mutant("limiter.rs", {"if slot >> TAG_SHIFT != tag {": "if slot == 0 {"}),
    "change-unclaimed": Mutant(
        "limiter.rs", {"_ => Next::Keep(Err(ChangeUnderWay))": "_ => Next::Store(pause, Ok(()))"}
    ),
    "change-never-over": Mutant("limiter.rs", {CHANGE_OVER: ""}),
    "tag-before-claim": Mutant("limiter.rs", {CLAIM: TAG_AT_CLAIM, TAG: ""}),
    "claim-by-slot": Mutant(
        "limiter.rs",
        {"Next::Store(pause | CHANGING, Ok(()))": "Next::Keep(Ok(()))", NEW_SLOT: CLAIM_BY_SLOT},
    ),
    "shorter-pause-stored": Mutant("limiter.rs", {"if pause < longer {": "if true {"}),
    "bucket-not-emptied": Mutant("limiter.rs", {"state.tat.max(one_left)": "state.tat"}),
    "pause-unseen": Mutant("limiter/state.rs", {"if ready_at > paused_until {": "if true {"}),
    "recounted-from-now": Mutant("limiter.rs", {FROM_WHEN: "now.as_nanos()"}),
    "pause-before-level": Mutant(
        "limiter.rs",
        {LEVEL: PAUSE_BEFORE_LEVEL, FROM_WHEN: "now.as_nanos().max(paused & TIME_MAX)"},
    ),
    "pause-overwritten": Mutant("limiter.rs", {CHANGE_OVER: CHANGE_OVER_BY_STORE}),
    "pause-forgets-the-change": Mutant("limiter.rs", {LONGER: LONGER_ALONE}),
    # The circuit breaker.
    "empty-drop": Mutant("breaker.rs", {"if ticket.role == Role::Probe {": "if false {"}),
    "no-lease": Mutant("breaker/word.rs", {LEASE: ENDLESS_LEASE}),
    "no-generation": Mutant(
        "breaker/word.rs",
        {f"{GENERATION} || mode": "if generation > GENERATION_MASK || mode"},
    ),
    # The clock over a counter that wraps.
    "counter-before-word": Mutant(
        "ticks.rs", {COUNTER: "", UPDATE_TICKS: f"{COUNTER} {UPDATE_TICKS}"}
    ),
    "counter-once": Mutant(
        "ticks.rs", {UPDATE_TICKS: f"let mut once = None; {UPDATE_TICKS}", COUNTER: COUNTER_ONCE}
    ),
    # Calls.
    "no-refund-at-admit": Mutant("call/guard.rs", {"machine.parts.refund();": ""}),
    "charge-kept": Mutant(
        "call/machine.rs", {"if !core::mem::take(&mut self.is_charged) {": "if !self.is_charged {"}
    ),
    # The table of upstreams.
    "key-unchecked": Mutant(
        "table.rs", {"(slot.key.load() == key).then_some(entry)": "Some(entry)"}
    ),
    "put-without-a-second-look": Mutant(
        "table.rs", {"let entry = match self.find(now, key) {": "let entry = match None {"}
    ),
    "no-second-look-after-claim": Mutant("table.rs", {SECOND_LOOK: "if false {"}),
}


def models() -> dict[str, list[str]]:
    """The mutants that each model names."""
    test = re.compile(r"(?://.*\n|#\[.*\n)*#\[test\]\n(?:#\[.*\n)*fn (\w+)", re.MULTILINE)
    found = {}
    for file in sorted(MODELS.glob("*.rs")):
        for model in test.finditer(file.read_text()):
            line = re.search(r"^// Mutants?: (.+)$", model[0], re.MULTILINE)
            found[f"{file.stem}::{model[1]}"] = line[1].split(", ") if line else []
    return found


def contradictions() -> list[str]:
    """Where the models and the mutants do not speak of one another."""
    named = models()
    return [
        *(f"{model} names no mutant" for model, names in named.items() if not names),
        *(
            f"{model} names {name}, which is no mutant"
            for model, names in named.items()
            for name in names
            if name not in MUTANTS
        ),
        *(f"no model names {name}" for name in MUTANTS if name not in sum(named.values(), [])),
    ]


def cargo_test(*arguments: str, limit: float | None = None) -> tuple[int, str]:
    """The exit code and the output."""
    command = ["cargo", "test", "-q", "-p", "holdoff", "--test", "loom", "--profile", "loom"]
    # Not a directory the checkout uses: cargo would take a mutant's build for the checkout's own.
    target = ROOT / "target" / "mutants" / "target"
    env = os.environ | {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(target)}
    with subprocess.Popen(
        [*command, *arguments],
        cwd=COPY,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # The model, too, not only cargo.
            raise
    return process.returncode, output


def fresh_copy() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for part in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / part, COPY / part)
    for part in ("core", "adapter-embassy", "adapter-reqwest", "adapter-tokio", "herd"):
        # `copy` gives files a new date, so that cargo sees that the last mutant is gone.
        shutil.copytree(ROOT / part, COPY / part, copy_function=shutil.copy)


def objection(model: str) -> str | None:
    """What keeps the mutant that is built from counting as refuted by the model."""
    try:
        code, output = cargo_test("--", "--exact", model, limit=LIMIT)
    except subprocess.TimeoutExpired:
        return f"keeps {model} busy for more than {LIMIT} s"
    if code == 0:
        return f"SURVIVES {model}:\n{output}"
    # By what the model asserts: not by a signal or a limit of loom's.
    signs = ("0 passed; 1 failed;", f"panicked at core/tests/loom/{model.split('::')[0]}.rs:")
    if not all(sign in output for sign in signs):
        return f"stops {model}, but breaks no assertion of it:\n{output[-10_000:]}"
    return None


def verdicts(name: str) -> list[str | None]:
    """For each model that names the mutant, what keeps it from counting as refuted."""
    mutant = MUTANTS[name]
    file = SRC / mutant.file
    original = mutated = (ROOT / file).read_text()
    for there, put in mutant.edits.items():
        if original.count(there) != 1:
            return [f"does not apply: {file} has {original.count(there)} places for {there!r}"]
        mutated = mutated.replace(there, put)
    (COPY / file).write_text(mutated)
    code, output = cargo_test("--no-run")
    if code == 0:
        found = [objection(model) for model, names in models().items() if name in names]
    else:
        found = [f"does not build:\n{output}"]
    (COPY / file).write_text(original)
    return found


def main(names: list[str]) -> int:
    if wrong := contradictions():
        print(*wrong, sep="\n")
        return 1
    fresh_copy()
    if not names:
        code, output = cargo_test()
        print(output[-20_000:], flush=True)
        if code != 0:
            return 1
    failed = False
    for name in names or MUTANTS:
        found = verdicts(name)
        wrong = [why_not for why_not in found if why_not is not None]
        refuted = [model for model, mutants in models().items() if name in mutants]
        print(f"{name:26}", *(wrong or [f"refuted by {', '.join(refuted)}"]), flush=True)
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
