#!/usr/bin/env python3
"""What pieces of the core cost on a Cortex-M3: flash, RAM and stack, as a table.

Builds the images of `.ci/size`, each of which holds one piece and would not link if a panic could
be reached in it (`rest` for nothing but that; `adapter` may link the one panic that futures have;
of `untold` only what it links is looked at); fails where a piece is larger than it was allowed to
become, or links what no piece may; with `--strict` also where one is over its target. With `--check
README.md` it also fails if that file shows another table; that is by Debian's compiler, as other
compilers give other sizes.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "thumbv7m-none-eabi"

# Image, what is in it, the most flash it may take, and how much it should take at most.
PIECES = [
    ("backoff", "backoff only", 400, 600),
    ("retry", "retry machine", 2_560, 2_560),
    ("breaker", "+ breaker", 4_900, None),
    ("limiter", "+ limiter", 6_450, None),
    ("budget", "+ budget", 7_000, None),
    ("headers", "+ HTTP statuses, `Retry-After` without dates", 8_500, None),
    ("all", "+ rate-limit headers without dates", 9_900, 6_144),
    ("dates", "+ dates: everything", 13_300, None),
]  # fmt: skip
# Beyond the stack that its operation needs: may, and should.
STACK = 450, 512

# No image may link any of these.
FORBIDDEN = {
    "software floating point": r"__aeabi_c?[fd](?!iv)\w*|__aeabi_u?[il]2[fd]|__\w*[sd]f\d?",
    "formatting": r".*core::fmt.*",
    "panics": r".*panic.*",
}
PANIC = re.compile(r"core::[\w:]*(?:panic|_fail)[\w:]*")
# The one that a future of an `async fn` has, for when it is polled after its end.
RESUMED = {
    "core::panicking::panic_const::panic_const_async_fn_resumed",
    "core::panicking::panic_fmt",
}
# What a call of the adapter must not link if given none of it; what it links is named likewise.
UNTOLD = re.compile(r".*holdoff::(?:breaker|budget|call::guard|call::watch|counters)\b.*")
TOLD = re.compile(r".*holdoff::(?:call|limiter)\b.*")
DIVISION = "__aeabi_uldivmod", "__aeabi_ldivmod"
# The compiler writes one out in place: no symbol tells of it.
WIDE_DIVISION = re.compile(r"\b[us](?:div|rem) i128\b")


def run(*command: str, **options) -> str:
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def built(wants_debian: bool) -> tuple[pathlib.Path, str]:
    """Where the images are, and what compiled them."""
    build = ["build", "--quiet", "--release", "--locked", "--target", TARGET]
    environment = dict(
        os.environ,
        CARGO_TARGET_DIR=str(target_dir()),
        CARGO_TARGET_THUMBV7M_NONE_EABI_RUSTFLAGS="--emit=llvm-ir",
    )
    rustc = "rustc"
    if has_target() and not wants_debian:
        cargo = "cargo"
    else:
        # Debian's compiler comes with the source of its library.
        rustc, cargo = "/usr/bin/rustc", "/usr/bin/cargo"
        environment |= {"RUSTC_BOOTSTRAP": "1", "RUSTC": rustc}
        build.append("-Zbuild-std=core")
    run(cargo, *build, env=environment, cwd=ROOT / ".ci" / "size")
    return target_dir() / TARGET / "release", " ".join(run(rustc, "--version").split()[:2])


def has_target() -> bool:
    sysroot = shutil.which("rustc") and run("rustc", "--print", "sysroot").strip()
    return bool(sysroot) and (pathlib.Path(sysroot) / "lib" / "rustlib" / TARGET).is_dir()


def target_dir() -> pathlib.Path:
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "size"


def size(image: pathlib.Path) -> tuple[int, int]:
    """Flash and RAM: initial values of variables are in both."""
    text, data, bss, *_ = run("arm-none-eabi-size", image).splitlines()[1].split()
    return int(text) + int(data), int(data) + int(bss)


def symbols(image: pathlib.Path) -> list[str]:
    lines = run("arm-none-eabi-nm", "--demangle", image).splitlines()
    return [line.split(maxsplit=2)[-1] for line in lines if not line.startswith(" ")]


def divides_wide(image: pathlib.Path) -> bool:
    listings = (image.parent / "deps").glob(f"{image.name}-*.ll")
    latest = max(listings, key=lambda listing: listing.stat().st_mtime)
    return bool(WIDE_DIVISION.search(latest.read_text()))


def stack(image: pathlib.Path) -> dict[str, int]:
    """What the image prints: names and numbers of bytes."""
    machine = ["-cpu", "cortex-m3", "-machine", "lm3s6965evb", "-nographic"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    # What the image prints comes out of QEMU as errors do.
    command = ["qemu-system-arm", *machine, *semihosting, "-kernel", image]
    out = run(*command, stderr=subprocess.STDOUT, timeout=60)
    return {name: int(number) for name, number in re.findall(r"^(\w+) (\d+)$", out, re.M)}


def measured(wants_debian: bool) -> tuple[str, list[str], list[str]]:
    """The table, what is wrong, and which targets are missed."""
    images, compiler = built(wants_debian)
    errors, missed = [], []

    def judge(what: str, number: int, most: int, target: int | None) -> None:
        if number > most:
            errors.append(f"{what}: {number} bytes, at most {most} are allowed")
        if target and number > target:
            missed.append(f"{what}: {number} bytes, {number - target} over the target of {target}")

    rows = [("piece", "flash (bytes)", "target", "RAM (bytes)", "64-bit division")]
    base = size(images / "empty")
    for image, name, most, aim in PIECES:
        flash, ram = (here - there for here, there in zip(size(images / image), base))
        linked = symbols(images / image)
        divides = any(symbol in DIVISION for symbol in linked)
        target = f"≤ {aim:,}" if aim else ""
        rows.append((name, f"{flash:,}", target, str(ram), "linked" if divides else "no"))
        judge(f"{name}, flash", flash, most, aim)
        for what, pattern in FORBIDDEN.items():
            found = [symbol for symbol in linked if re.fullmatch(pattern, symbol)]
            if found:
                errors.append(f"{name}: links {what}: {', '.join(found)}")
        if divides_wide(images / image):
            errors.append(f"{name}: contains a 128-bit division")
    panics = {symbol for symbol in symbols(images / "adapter") if PANIC.fullmatch(symbol)}
    if panics != RESUMED:
        errors.append(f"adapter: links {sorted(panics)}, and not {sorted(RESUMED)}")
    linked = symbols(images / "untold")
    if found := [symbol for symbol in linked if UNTOLD.fullmatch(symbol)]:
        errors.append(f"untold: links what its call is not given: {', '.join(found)}")
    if not any(TOLD.fullmatch(symbol) for symbol in linked):
        errors.append("untold: no symbol tells of the call that it makes")
    if not divides_wide(images / "rest"):
        errors.append("`Limiter::set_quota` divides 128 bits, and it was not found")
    table = "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * 5, *rows[1:]])

    depth = stack(images / "stack")
    extra = depth["guarded"] - depth["bare"]
    judge("a guarded call, stack", extra, *STACK)
    table += (
        f"\n\nOne guarded call (limiter, breaker, budget) takes {extra} bytes of stack beyond its "
        f"operation's (target: ≤ {STACK[1]})\nand is a future of {depth['future']} bytes, that of "
        f"its operation ({depth['operation']}) included. By {compiler}."
    )
    return table, errors, missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", metavar="FILE", type=pathlib.Path, help="shows this table")
    parser.add_argument("--strict", action="store_true", help="fail on missed targets, too")
    arguments = parser.parse_args()
    check = arguments.check
    table, errors, missed = measured(wants_debian=check is not None)
    print(table)
    if check and table not in check.read_text():
        errors.append(f"{check} shows another table")
    print("\n".join(errors + [f"missed: {miss}" for miss in missed]), file=sys.stderr)
    sys.exit(1 if errors or arguments.strict and missed else 0)
