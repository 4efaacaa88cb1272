#!/usr/bin/env python3
"""Fails where an import points up: core's modules have an order, adapters know only the core."""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A module may import modules of lower rank only.
RANKS = {
    "wide": -1,
    "config": 0, "ratio": 0, "sync": 0, "time": 0,
    "backoff": 1, "outcome": 1, "ticks": 1,
    "breaker": 2, "budget": 2, "http": 2, "limiter": 2, "reconnect": 2,
    "policy": 3,
    "call": 4,
    "counters": 5,
    "failover": 5,
    "upstream": 6,
    "table": 7,
    "drive": 7,
}  # fmt: skip
# What `crate::` reaches without a module: macros live where they are defined.
MACROS = {"valid": "config"}


def imported(text: str, depth: int) -> set[str]:
    """The top-level modules named in `crate::a::…` and `crate::{a::…, b::…}`, `depth` modules down.

    As many `super` as there are modules lead to the root, too.
    """
    code = re.sub(r"//[^\n]*", "", text)
    root = r"(?:(?<![$\w])crate|(?<![\w:])super" + r"::super" * (depth - 1) + r")::"
    names = set(re.findall(root + r"(\w+)", code)) - {"super"}
    for group in re.findall(root + r"\{(.*?)\};", code, re.S):
        depth_one = re.sub(r"\{[^{}]*\}", "", group)
        names |= {part.strip().split("::")[0] for part in depth_one.split(",") if part.strip()}
    return {MACROS.get(name, name) for name in names}


def core_errors() -> list[str]:
    errors = []
    source = ROOT / "core" / "src"
    for path in sorted(source.rglob("*.rs")):
        module = path.relative_to(source).parts[0].removesuffix(".rs")
        text = path.read_text()
        if module == "lib":
            continue
        if module not in RANKS:
            errors.append(f"{path}: module `{module}` has no rank in {__file__}")
            continue
        depth = len(path.relative_to(source).parts)
        for name in sorted(imported(text, depth) - {module}):
            if name not in RANKS:
                errors.append(f"{path}: imports `{name}`, which has no rank")
            elif RANKS[name] >= RANKS[module]:
                errors.append(f"{path}: imports `{name}`, which is not below `{module}`")
        if module != "sync" and re.search(r"\bsync::atomic\b|\bAtomic[UI]\d", text):
            errors.append(f"{path}: names an atomic outside sync.rs")
    return errors


def package_errors() -> list[str]:
    errors = []
    for manifest in sorted(ROOT.glob("*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text())
        name = package["package"]["name"]
        ours = {d for d in package.get("dependencies", {}) if d.startswith("holdoff")}
        allowed = set() if name == "holdoff" else {"holdoff"}
        if name == "holdoff-reqwest":
            allowed.add("holdoff-tokio")  # reqwest is a tokio library.
        if name != "holdoff-herd" and ours - allowed:
            errors.append(f"{manifest}: depends on {sorted(ours - allowed)}")
    return errors


if __name__ == "__main__":
    found = core_errors() + package_errors()
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)
