# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One-way latency of secured samples: ddsperf in plain text, with Cyclone DDS's builtin plugin and
with ours, in turns, at data and metadata ENCRYPT, rtps NONE, discovery and liveliness ENCRYPT.

The answer comes first: whether ours costs as little as it must (`dds_overhead.GATES`). Exit code 1
if it does not, 4 if that is undecided, 3 if something is missing. As root, on a quiet machine:

    sudo .venv/bin/python bench/dds.py --json dds.json

ddsperf's one-way latency is half of a round trip. In a round each stack has two new processes for
each size, one on each of two processors; the next round begins with another stack. A figure is the
median of ddsperf's medians of its seconds, without the first, in which caches warm up.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from dds_overhead import (  # noqa: E402 - beside this file
    AEGIS,
    BUILTIN,
    FEWEST_ROUNDS,
    GATES,
    OURS,
    PLAIN,
    SIZES,
    Judged,
    Ratio,
    Round,
    judge,
    overall,
    overheads,
    ratio,
    rounds_needed,
    size_name,
)

from support import cyclone  # noqa: E402
from support.cyclone import End  # noqa: E402
from warifu import tools  # noqa: E402
from warifu.calibrate import build  # noqa: E402
from warifu.calibrate.errors import CalibrateError  # noqa: E402
from warifu.compare.gates import Verdict  # noqa: E402
from warifu.dds.governance import Basic, Governance, Protection  # noqa: E402
from warifu.dds.keystore import Enclave, create  # noqa: E402
from warifu.lab import interruption, quiet  # noqa: E402

NONE, SIGN, ENCRYPT = Protection.NONE, Protection.SIGN, Protection.ENCRYPT
ORIGIN = Protection.ENCRYPT_WITH_ORIGIN_AUTHENTICATION
JUDGED = "data and metadata ENCRYPT"
GOVERNANCES = {
    JUDGED: Governance(Basic.ENCRYPT, ENCRYPT, NONE, ENCRYPT, ENCRYPT),
    "rtps SIGN as well": Governance(Basic.ENCRYPT, ENCRYPT, SIGN, ENCRYPT, ENCRYPT),
    "metadata by origin": Governance(Basic.ENCRYPT, ORIGIN, NONE, ENCRYPT, ENCRYPT),
}
"""The others are printed beside, at 64 B, and not judged."""
BESIDE_SIZE = 64
PLUGINS = {BUILTIN: cyclone.BUILTIN, OURS: "AES-256-GCM", AEGIS: "AEGIS-128L"}

ROUNDS, SECONDS = 12, 2
#: ddsperf's time begins with its process. So much of it may pass until the ends have found each
#: other; its row of that second has a part of a second's samples, or is missing.
MATCHING_S = 1
#: When a pair that has not ended is given up.
PATIENCE_S = 15
BUSY_SHARE = 0.05
"""Of all processors: from here on the machine is not quiet."""
CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.UNDECIDED: 4}


@dataclass(frozen=True)
class Cell:
    """What one pair of processes is run for."""

    governance: str
    stack: str
    size: int


class CellFailed(Exception):  # noqa: N818 - what happened
    """A pair gave no figure; the text says what it said."""


@dataclass(frozen=True)
class Bench:
    """Where pairs run."""

    network: str
    folder: Path
    keys: dict[str, dict[str, Enclave]]
    processors: tuple[int, int]
    seconds: int

    def run(self, cell: Cell) -> dict[str, Any]:
        """One pair's figures, us. Raises CellFailed."""
        pong = self._start(cell, "pong", self.seconds + PATIENCE_S)
        try:
            ping = self._start(cell, "ping", self.seconds + MATCHING_S)
            try:
                code = ping.wait(self.seconds + PATIENCE_S)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                _end(ping)
        finally:
            _end(pong)
        said = (self.folder / "ping.log").read_text(errors="replace")
        rows = re.findall(
            rf"size {cell.size} mean \S+ min ([\d.]+)us 50% ([\d.]+)us .* cnt (\d+)", said
        )
        if code != 0 or not rows:
            words = said.strip().splitlines()[-1:] or ["nothing"]
            raise CellFailed(f"ddsperf ended with {code} and said {words[0]}")
        kept = rows[1:] or rows
        return {
            "median_us": statistics.median(float(median) for _, median, _ in kept),
            "least_us": min(float(least) for least, _, _ in kept),
            "round_trips": sum(int(count) for *_, count in kept),
        }

    def _start(self, cell: Cell, role: str, seconds: int) -> subprocess.Popen[bytes]:
        plugin = PLUGINS.get(cell.stack)
        enclave = self.keys[cell.governance][f"/{role}"] if plugin else None
        end = End(enclave, cyclone.ours(plugin) if isinstance(plugin, str) else plugin)
        file = self.folder / f"{role}.xml"
        file.write_text(cyclone.configuration(end))
        is_ping = role == "ping"
        flags = ["-Qminmatch:1", *(["-Qinitwait:10"] if is_ping else [])]
        mode = ["ping", "size", str(cell.size)] if is_ping else ["pong"]
        processor = str(self.processors[is_ping])
        command = ["taskset", "-c", processor, tools.find("ddsperf"), "-D", str(seconds)]
        log = self.folder / f"{role}.log"
        return cyclone.start(self.network, file, log, [*command, *flags, *mode])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends it if it has not, and waits for that."""
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def cells(number: int, sizes: Sequence[int]) -> list[Cell]:
    """All of a round. Stacks take turns in being first, and in what they come after."""
    found = []
    for size in sizes:
        found += _turned([Cell(JUDGED, stack, size) for stack in (PLAIN, *PLUGINS)], number)
        if size == BESIDE_SIZE:
            for governance in list(GOVERNANCES)[1:]:
                found += _turned([Cell(governance, stack, size) for stack in PLUGINS], number)
    return found


def _turned(row: list[Cell], number: int) -> list[Cell]:
    by = number % len(row)
    turned = row[by:] + row[:by]
    return turned[::-1] if number // len(row) % 2 else turned


def measure(bench: Bench, rounds: int, sizes: Sequence[int], rows: list[dict[str, Any]]) -> None:
    """All rounds: each cell with its figures, or with what went wrong, is added to the rows."""
    total, begin = rounds * len(cells(0, sizes)), time.monotonic()
    for number in range(rounds):
        watch = quiet.Watch([])
        for cell in cells(number, sizes):
            row: dict[str, Any] = {"round": number, **vars(cell)}
            try:
                row |= bench.run(cell)
            except CellFailed as reason:
                row["failed"] = str(reason)
                say(f"round {number + 1}, {cell.stack}, {size_name(cell.size)}: {reason}")
            interruption.check()
            rows.append(row)
            took = time.monotonic() - begin
            left = took / len(rows) * (total - len(rows))
            where = f"round {number + 1} of {rounds}, {size_name(cell.size)}, {cell.stack}"
            progress(f"{where:<60} {left / 60:4.1f} min left ")
        shares = watch.shares()
        rows[-1]["shares"] = shares.record()
        if is_busy(rows[-1]["shares"]):
            say(
                f"round {number + 1}: others take {shares.others:.0%} of the processors, the "
                f"hypervisor {shares.stolen:.0%}: stop them and run this again"
            )
    progress("")


def is_busy(shares: dict[str, float]) -> bool:
    """Whether others, or the hypervisor, took more of the processors than a quiet machine's do."""
    return max(shares.values()) > BUSY_SHARE


def busy_rounds(rows: Sequence[dict[str, Any]]) -> str:
    """What a verdict has to be read with; nothing if the machine was quiet."""
    shares = [row["shares"] for row in rows if "shares" in row]
    busy = [max(one.values()) for one in shares if is_busy(one)]
    if not busy:
        return ""
    return (
        f"MEASURED ON A BUSY MACHINE: in {len(busy)} of {len(shares)} rounds others took up to "
        f"{max(busy):.0%} of it."
    )


def rounds_of(rows: Sequence[dict[str, Any]], governance: str) -> list[Round]:
    """Medians by round; plain text is the same for every governance."""
    found: dict[int, dict[tuple[str, int], float]] = {}
    for row in rows:
        if "median_us" in row and (row["governance"] == governance or row["stack"] == PLAIN):
            found.setdefault(row["round"], {})[row["stack"], row["size"]] = row["median_us"]
    return list(found.values())


def show(rows: Sequence[dict[str, Any]], judged: Sequence[Judged], sizes: Sequence[int]) -> None:
    """The verdict, the gates, then the tables."""
    words = {Verdict.PASS: "holds", Verdict.FAIL: "FAILS", Verdict.UNDECIDED: "undecided"}
    say_of = overall(judged)
    count = [f"{sum(one.verdict is each for one in judged)} {words[each]}" for each in words]
    busy = busy_rounds(rows)
    beside = f" {busy}" if busy else ""
    print(f"{say_of.upper()}: of {len(judged)} gates {', '.join(count)}.{beside}\n")
    most = max((one.ratio.rounds for one in judged), default=0)
    if most < FEWEST_ROUNDS:
        print(f"{most} rounds: intervals want {FEWEST_ROUNDS} at least.\n")
    elif needed := rounds_needed(judged):
        print(f"About {needed} rounds would decide, if figures stay as they are: --rounds.\n")
    print(f"Overhead over that of {BUILTIN}, 95 % interval:\n")
    table(
        ["stack", "size", "ratio", "interval", "may be", "rounds", "verdict"],
        [
            [
                one.gate.stack, size_name(one.gate.size), f"{one.ratio.value:.3f}",
                between(one.ratio),
                f"{one.gate.most:.2f}", str(one.ratio.rounds), words[one.verdict],
            ]
            for one in judged
        ],
    )  # fmt: skip
    for governance in GOVERNANCES:
        at = sizes if governance == JUDGED else [size for size in sizes if size == BESIDE_SIZE]
        if at:
            print(f"\n{governance}: one-way latency, us, median of the rounds' medians:\n")
            table(*latencies(rounds_of(rows, governance), at))
    failed = sum("failed" in row for row in rows)
    if failed:
        print(f"\n{failed} of {len(rows)} pairs gave no figure; their rounds lack it.")


def latencies(rounds: Sequence[Round], sizes: Sequence[int]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of a table of stacks, with the least and the largest round."""
    heading = ["size", "stack", "one-way", "rounds from", "to", "overhead", f"/ {BUILTIN}", "n"]
    lines = []
    for size in sizes:
        for stack in (PLAIN, *PLUGINS):
            medians = [one[stack, size] for one in rounds if (stack, size) in one]
            line = [size_name(size), stack]
            if not medians:
                lines.append([*line, "none", *[""] * 5])
                continue
            line += [f"{of(medians):.1f}" for of in (statistics.median, min, max)]
            over = overheads(rounds, stack, size) if stack != PLAIN else []
            against = ratio(rounds, stack, size) if over and stack != BUILTIN else None
            line.append(f"{statistics.median(over):.1f}" if over else "")
            line.append(f"{against.value:.2f} ({between(against)})" if against else "")
            lines.append([*line, str(len(medians))])
    return heading, lines


def between(found: Ratio) -> str:
    """The interval in words."""
    low, high = found.interval
    return "unknown" if high - low == float("inf") else f"{low:.3f} to {high:.3f}"


def table(heading: list[str], rows: list[list[str]]) -> None:
    """In Markdown."""
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    for number, row in enumerate([heading, *rows]):
        filled = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(filled)} |")
        if number == 0:
            print(f"|{'|'.join('-' * (width + 2) for width in widths)}|")


def conditions(arguments: argparse.Namespace) -> dict[str, Any]:
    """What a figure depends on beside the stacks."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    limits = ("rmem_max", "wmem_max")
    return {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "build": build.profile(),
        "plugin": tools.version("libwarifu_dds_crypto.so"),
        # ddsperf does not say its own.
        "middleware": tools.version("cyclonedds-probe"),
        "kernel": platform.release(),
        "processor": model[1] if model else platform.machine(),
        "processors": arguments.processors,
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        **{name: int(Path(f"/proc/sys/net/core/{name}").read_text()) for name in limits},
        "governances": {
            name: {kind: str(value) for kind, value in vars(one).items()}
            for name, one in GOVERNANCES.items()
        },
    }


def record(
    about: dict[str, Any], rows: Sequence[dict[str, Any]], judged: Sequence[Judged]
) -> dict[str, Any]:
    """Everything, as JSON has it: no infinities."""

    def bound(value: float) -> float | None:
        return value if abs(value) < float("inf") else None

    gates = [
        {
            **vars(one.gate), "ratio": bound(one.ratio.value), "rounds": one.ratio.rounds,
            "low": bound(one.ratio.interval.low), "high": bound(one.ratio.interval.high),
            "verdict": str(one.verdict),
        }
        for one in judged
    ]  # fmt: skip
    return {"verdict": str(overall(judged)), "gates": gates, "conditions": about, "cells": rows}


@contextlib.contextmanager
def workplace(arguments: argparse.Namespace) -> Iterator[Bench]:
    """A namespace, keystores and a folder, all of which are removed."""
    now = datetime.datetime.now(datetime.UTC)
    with tempfile.TemporaryDirectory(prefix="warifu-bench-dds-") as name, cyclone.network() as net:
        keys = {
            governance: create(Path(name) / f"keys-{number}", ["/ping", "/pong"], kinds, now=now)
            for number, (governance, kinds) in enumerate(GOVERNANCES.items())
        }
        yield Bench(net, Path(name), keys, arguments.processors, arguments.seconds)


def say(text: str, end: str = "\n") -> None:
    """To people."""
    print(text, end=end, file=sys.stderr, flush=True)


def progress(text: str) -> None:
    """Over what it said before on a terminal; nothing but text elsewhere."""
    if sys.stderr.isatty():
        say(f"\r{text}", end="" if text else "\n")
    elif text:
        say(text.rstrip())


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whole = {"type": int, "metavar": "N"}
    parser.add_argument("--rounds", **whole, default=ROUNDS, help=f"default {ROUNDS}: 20 minutes")
    parser.add_argument("--seconds", **whole, default=SECONDS, help="of each pair's measurement")
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--processors", type=int, nargs=2, default=(0, 1), metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure goes there as well")
    arguments = parser.parse_args()
    for name in ("rounds", "seconds"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}: expected 1 or more")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        parser.error(f"--json {arguments.json}: there is no folder {arguments.json.parent}")
    if not set(arguments.processors) <= os.sched_getaffinity(0):
        parser.error(
            f"--processors {arguments.processors}: expected two of {os.sched_getaffinity(0)}"
        )
    return arguments


def main() -> int:
    """Measures, and judges."""
    arguments = parse()
    if os.geteuid() != 0:
        say("bench: network namespaces need root: use sudo")
        return 3
    try:
        build.refuse_development()
    except CalibrateError as reason:
        say(f"bench: warning: {reason}")
    rows: list[dict[str, Any]] = []
    interrupted = False
    try:
        about = conditions(arguments)
    except tools.ToolMissing as reason:
        say(f"bench: {reason}")
        return 3
    except KeyboardInterrupt:
        say("\nbench: interrupted; nothing was measured")
        return 130
    try:
        with interruption.deferred(), workplace(arguments) as bench:
            measure(bench, arguments.rounds, arguments.sizes, rows)
    except tools.ToolMissing as reason:
        say(f"bench: {reason}")
        return 3
    except KeyboardInterrupt:
        say("\nbench: interrupted; what there is so far:")
        interrupted = True
    gates = [gate for gate in GATES if gate.size in arguments.sizes]
    judged = judge(rounds_of(rows, JUDGED), gates)
    show(rows, judged, arguments.sizes)
    if arguments.json:
        arguments.json.write_text(json.dumps(record(about, rows, judged), indent=1) + "\n")
    return 130 if interrupted else CODES[overall(judged)]


if __name__ == "__main__":
    sys.exit(main())
