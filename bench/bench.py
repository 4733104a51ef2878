# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Speeds of the simulator beside SimPy's on the same reference model, what a signature in a card
costs beside the signature, what DDS Security adds to a sample, and the link's precision.

Prints one table; what the tools say on the way goes to stderr. Run it on a quiet machine: nothing
here is a test, and nothing fails for being slow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warifu.calibrate import build
from warifu.calibrate.errors import CalibrateError

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    figure: str
    how: str


@dataclass(frozen=True)
class Size:
    """How much each benchmark does."""

    engine_trials: int
    engine_runs: int
    case_trials: int
    counted_trials: int
    exact_runs: int
    simpy_trials: int
    readings: int
    signatures: int
    apdus: int
    dds: tuple[str, ...]
    sweep: tuple[str, ...]
    link: tuple[str, ...]


#: An eleventh of the sweep's cases, which has every choice in it.
PART_OF_SWEEP = ("--step", "11")
FULL = Size(
    2_000_000, 5, 1_000, 4_000, 60, 50_000, 500, 2_000, 10_000, ("--rounds", "6"), PART_OF_SWEEP, ()
)
QUICK = Size(
    50_000, 2, 1_000, 1_000, 4, 2_000, 20, 100, 200,
    ("--rounds", "1", "--seconds", "1", "--sizes", "64"),
    ("--step", "101", "--trials", "10"), ("--only", "loss"),
)  # fmt: skip


class MissingError(Exception):
    """Something that a benchmark needs is not here; the text says what to do."""


def run(
    command: Sequence[str | Path], *, verdicts: Sequence[int] = (0,), **environment: str
) -> str:
    """Runs a command to its end; its stdout. Its stderr goes to ours. `verdicts` are the exit codes
    with which it has done what it was asked to."""
    print("$", *command, file=sys.stderr)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in verdicts:
        raise MissingError(f"`{' '.join(map(str, command))}` ended with {done.returncode}")
    return done.stdout


#: What the event engine is timed with: what people run first, a calibrated machine at both ends,
#: whose costs are drawn; then constant costs; each beside the same without loss. Targets in million
#: establishments a second.
MODELS = (
    ("calibrated", "2 %", 0.8),
    ("calibrated", "0 %", None),
    ("constant", "2 %", 3.0),
    ("constant", "0 %", None),
)


def engine(size: Size) -> tuple[dict[str, float], list[Line]]:
    """Establishments a second of the event engine on one core, and instructions for each; by model
    those at 2 % loss."""
    run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "warifu-sim", "--examples"])
    profile = TARGET / "release" / "examples" / "profile"
    lines: list[Line] = []
    speeds: dict[str, float] = {}
    for model, loss, target in MODELS:
        what = f"warifu-sim, one core, {model} costs, RTT 60 ms, loss {loss}"
        many = _speeds(profile, size.engine_runs, size.engine_trials, model, loss)
        speed = statistics.median(many)
        if loss == "2 %":
            speeds[model] = speed
        asked = "" if target is None else f"; target above {target:g} M"
        lines.append(
            Line(
                what,
                f"{speed / 1e6:.2f} M establishments/s",
                f"median of {len(many)} runs of {size.engine_trials:,} trials, "
                f"{min(many) / 1e6:.2f} to {max(many) / 1e6:.2f}{asked}",
            )
        )
        few = _speeds(profile, 5 * size.engine_runs, size.case_trials, model, loss)
        lines.append(
            Line(
                "",
                f"{statistics.median(few) / 1e6:.2f} M establishments/s",
                f"cases of {size.case_trials:,} trials, each by a program of its own that knows of "
                "no other; compiling the case apart",
            )
        )
        if shutil.which("valgrind"):
            less, more = (
                _instructions(profile, trials, model, loss)
                for trials in (size.counted_trials, 3 * size.counted_trials)
            )
            each = (more - less) / (2 * size.counted_trials)
            figure = f"{each:,.0f} instructions/establishment"
            lines.append(Line("", figure, "callgrind; the same every time"))
        else:
            lines.append(Line("", "instructions not counted", "apt-get install valgrind"))
    return speeds, lines


def _speeds(profile: Path, runs: int, trials: int, model: str, loss: str) -> list[float]:
    """Trials a second of so many runs; the time to compile the case is not in them."""
    speeds = []
    for _ in range(runs):
        output = run([profile, str(trials), model, loss])
        found = re.search(r"([\d.]+) trials/s", output)
        if not found:
            raise MissingError(f"{profile} printed no speed: {output!r}")
        speeds.append(float(found.group(1)))
    return speeds


def exact(size: Size) -> Iterator[Line]:
    """What the exact tier takes beside 50,000 trials of the event tier, and the noise of both."""
    program = TARGET / "release" / "examples" / "exact"
    result = json.loads(run([program, str(size.exact_runs), "2 %"]))
    one, other = result["exact"], result["events"]
    yield Line(
        "exact tier, loss 2 %",
        f"{one['median_s'] * 1e3:.0f} ms",
        f"{result['patterns']} patterns, residual {result['residual']:.1e}; 50,000 trials of the "
        f"event tier in the same run: {other['median_s'] * 1e3:.0f} ms",
    )
    ratio = one["p99_deviation_ms"] / other["p99_deviation_ms"]
    yield Line(
        "",
        f"{ratio:.2f} of their noise in P99",
        f"standard deviation over {result['runs']} seeds: {one['p99_deviation_ms']:.3f} and "
        f"{other['p99_deviation_ms']:.3f} ms; target below 0.1",
    )
    script = ROOT / "bench" / "tiers.py"
    whole = json.loads(run([sys.executable, script, "--runs", str(size.exact_runs)]))
    yield Line(
        "",
        f"{whole['exact_s'] * 1e3:.0f} ms",
        f"warifu predict, one core, every metric to Parquet; 50,000 trials of the event tier: "
        f"{whole['events_s'] * 1e3:.0f} ms",
    )


def _instructions(program: Path, *arguments: int | str) -> int:
    """Instructions that a run of the program takes."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*command, program, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MissingError(f"{program} under callgrind ended with {done.returncode}")
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found:
        raise MissingError(f"callgrind printed no count: {done.stderr[-300:]!r}")
    return int(found.group(1))


def reading(size: Size) -> Iterator[Line]:
    """How long it takes to read a study with every profile that comes with Warifu."""
    run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "warifu-model", "--examples"])
    program = TARGET / "release" / "examples" / "read_study"
    median, spread = run([program, str(size.readings)]).strip().split(", ")
    largest_kb = max(path.stat().st_size for path in ROOT.glob("profiles/*/*.toml")) / 1e3
    yield Line(
        f"a study, with a profile of {largest_kb:.0f} kB",
        median,
        f"median of {size.readings}, {spread}; target below 5 ms",
    )
    if shutil.which("valgrind"):
        each = (_instructions(program, 6) - _instructions(program, 2)) / 4
        yield Line("", f"{each / 1e6:.1f} M instructions/study", "callgrind")


def simpy(size: Size, speeds: dict[str, float]) -> Iterator[Line]:
    """The reference model in SimPy, with constant costs, in the same run."""
    script = ROOT / "bench" / "simpy_reference.py"
    result = json.loads(run([sys.executable, script, "--trials", str(size.simpy_trials)]))
    other = result["establishments_per_s"]
    yield Line(
        f"{result['engine']}, one core",
        f"{other / 1e3:.1f} k establishments/s",
        "constant costs, and simpler recovery, which favours SimPy",
    )
    for model, about in (("constant", "the same model"), ("calibrated", "SimPy draws no costs")):
        yield Line(
            f"warifu-sim, {model} costs / SimPy", f"{speeds[model] / other:,.0f} times", about
        )


def criterion(size: Size) -> Iterator[Line]:
    """Every criterion benchmark: its throughput, or its time."""
    shutil.rmtree(TARGET / "criterion", ignore_errors=True)
    quick = ["--", "--quick"] if size is QUICK else []
    for crate in ("warifu-sim", "warifu-results"):
        run(["cargo", "bench", "--quiet", "--locked", "-p", crate, "--bench", "*", *quick])
    for path in sorted((TARGET / "criterion").glob("**/new/estimates.json")):
        about = json.loads((path.parent / "benchmark.json").read_text())
        mean_ns = json.loads(path.read_text())["mean"]
        low, high = (
            mean_ns["confidence_interval"][side] for side in ("lower_bound", "upper_bound")
        )
        elements = (about.get("throughput") or {}).get("Elements")
        if elements:
            figure = f"{elements / mean_ns['point_estimate'] * 1e3:.2f} M elements/s"
            interval = f"95 %: {elements / high * 1e3:.2f} to {elements / low * 1e3:.2f}"
        else:
            figure = f"{mean_ns['point_estimate'] / 1e3:.2f} us"
            interval = f"95 %: {low / 1e3:.2f} to {high / 1e3:.2f}"
        yield Line(f"criterion {about['full_id']}", figure, interval)


def sweep(size: Size) -> Iterator[Line]:
    """A study of 100,000 cases, from its text to Parquet, on all cores: of a calibrated machine,
    and with constant costs."""
    script = ROOT / "bench" / "sweep.py"
    for device in ("xeon-2-5-ghz-vm", "bench"):
        result = json.loads(run([sys.executable, script, "--device", device, *size.sweep]))
        each = result["trials"] / result["cases"]
        asked = "; target below 60 s for 100,000 cases" if device != "bench" else ""
        yield Line(
            f"{result['cases']:,} cases x {each:,.0f} trials, {device}",
            f"{result['simulate_s']:.1f} s",
            f"{os.cpu_count()} cores, and {result['read_s']:.1f} s to read it; "
            f"{result['parquet_mb']:.0f} MB of Parquet, at most {result['memory_mb']:.0f} MB of "
            f"memory{asked}",
        )


def signatures(size: Size) -> Iterator[Line]:
    """What C_Sign costs beside the signature itself, SoftHSM2's whole call, and a kept token."""
    script = ROOT / "bench" / "agent.py"
    result = json.loads(run([sys.executable, script, "--count", str(size.signatures)]))
    targets, whole = result["targets_ms"], result["whole_call"]
    own = whole["own"]["p50_ms"]
    ways = {
        "in_process": "C_Sign, card in this process",
        "socket": "C_Sign, card at a socket",
        "agent": "C_Sign, through the agent",
    }
    for way, what in ways.items():
        yield Line(
            what,
            f"{result['overhead_p50_ms'][way]:.3f} ms",
            f"n = {whole[way]['n']:,}; P50 {whole[way]['p50_ms']:.3f} less the signature's own "
            f"{own:.3f}{_target(targets.get(way))}",
        )
    if "softhsm2" in whole:
        hsm = whole["softhsm2"]
        yield Line("C_Sign, SoftHSM2", f"{hsm['p50_ms']:.3f} ms", f"n = {hsm['n']:,}; P50, whole")
    else:
        yield Line("C_Sign, SoftHSM2", "not timed", "apt-get install softhsm2 opensc")
    token = result["cached_token"]
    yield Line(
        "a kept token at the agent's socket",
        f"{token['p50_ms']:.3f} ms",
        f"n = {token['n']:,}; P50{_target(targets['cached_token'])}",
    )


def apdus(size: Size) -> Iterator[Line]:
    """How long an APDU takes to the virtual card and back."""
    script = ROOT / "bench" / "card.py"
    result = json.loads(run([sys.executable, script, "--count", str(size.apdus)]))
    # The target is for the reader alone.
    ways = {"unix": ("the socket", None), "at": ("AT+CSIM", None),
            "pcsc": ("PC/SC and vpcd", result["target_ms"])}  # fmt: skip
    for way, (what, target) in ways.items():
        if way in result:
            about = result[way]
            figure = f"{about['p50_ms']:.3f} ms"
            yield Line(f"APDU, {what}", figure, f"n = {about['n']:,}; P50{_target(target)}")
        else:
            yield Line(f"APDU, {what}", "not timed", "it needs root: `sudo make bench`")


def cortex_m3(size: Size) -> Iterator[Line]:
    """Instructions a second of the simulated Cortex-M3, plain and with taint, beside QEMU."""
    script = ROOT / "bench" / "m3.py"
    result = json.loads(run([sys.executable, script, "--runs", str(size.engine_runs)]))
    names = {"plain": "warifu-m3", "taint": "warifu-m3, secrets followed", "qemu": "QEMU"}
    for key, what in names.items():
        about = result["m_per_s"][key]
        target = result["targets"].get(key)
        asked = "" if target is None else f"; target above {target:g}"
        how = f"median of {about['n']}, {about['least']:.0f} to {about['most']:.0f}{asked}"
        yield Line(what, f"{about['median']:.0f} M instructions/s", how)


def encryptions(_size: Size) -> Iterator[Line]:
    """What Warifu's plugin takes to encrypt a sample of 64 B, without malloc and free."""
    if not shutil.which("valgrind"):
        return
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "warifu-dds-crypto"]
    run([*build, "--example", "encode_calls"])
    program = TARGET / "release" / "examples" / "encode_calls"
    each = {}
    for what in ("malloc-and-free", "AES-256-GCM", "AEGIS-128L"):
        less, more = (_instructions(program, what, calls, 64) for calls in (1000, 3000))
        each[what] = (more - less) / 2000
    buffer = each.pop("malloc-and-free")
    for aead, count in each.items():
        figure = f"{count - buffer:,.0f} instructions/call"
        yield Line(f"encode_serialized_payload, 64 B, {aead}", figure, "callgrind")
    yield Line("", f"{buffer:,.0f} instructions", "malloc and free of its buffer, apart")


def secured_samples(size: Size) -> Iterator[Line]:
    """What DDS Security adds to a sample's latency with our plugin, over Cyclone's own."""
    if os.geteuid() != 0:
        raise MissingError("DDS Security's overhead needs root: run `sudo make bench`")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dds.json"
        command = [sys.executable, ROOT / "bench" / "dds.py", "--json", file, *size.dds]
        print("$", *command, file=sys.stderr)
        code = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode
        # 1 and 4 are its verdicts.
        if code not in (0, 1, 4):
            raise MissingError(f"bench/dds.py ended with {code}")
        result = json.loads(file.read_text())
    for gate in result["gates"]:
        low, ratio, high = (
            "unknown" if gate[key] is None else f"{gate[key]:.2f}"
            for key in ("low", "ratio", "high")
        )
        yield Line(
            f"{gate['stack']}, {gate['size']:,} B: overhead / builtin's",
            ratio,
            f"95 %: {low} to {high}; target at most {gate['most']:.2f}: {gate['verdict']}",
        )


def _target(target_ms: float | None) -> str:
    return "" if target_ms is None else f"; target below {target_ms:g} ms"


def command_line(_size: Size) -> Iterator[Line]:
    """How long the command line takes to start."""
    times_s = []
    for _ in range(10):
        begin = time.perf_counter()
        run([BIN / "warifu", "--help"])
        times_s.append(time.perf_counter() - begin)
    yield Line(
        "warifu --help",
        f"{statistics.median(times_s) * 1e3:.0f} ms",
        f"median of {len(times_s)}, at most {max(times_s) * 1e3:.0f}",
    )


def link(size: Size) -> None:
    """The emulated link's own precision, as it prints it, also where a check missed its bound."""
    if os.geteuid() != 0:
        raise MissingError("the link's precision needs root: run `sudo make bench`")
    print()
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "precision.json"
        command = [BIN / "warifu-link", "precision", "--output", result, *size.link]
        # 1 is also what it ends with where it could not measure; then there is no result.
        table = run(command, verdicts=(0, 1))
        if not result.exists():
            raise MissingError("`warifu-link precision` could not measure, as it says above")
    print(table, end="")


def show(lines: Sequence[Line]) -> None:
    """The table, in Markdown."""
    rows = [("what", "figure", "how"), *((line.what, line.figure, line.how) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for number, row in enumerate(rows):
        print(
            "| "
            + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            + " |"
        )
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def main() -> int:
    """Runs every benchmark that it can; 1 if one could not be run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a moment each, to see that it works")
    parser.add_argument("--full-sweep", action="store_true", help="all 100,000 cases of the sweep")
    parser.add_argument("--only-engine", action="store_true", help="the simulator's speed alone")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else FULL
    if arguments.full_sweep:
        size = replace(size, sweep=())
    try:
        build.refuse_development()
    except CalibrateError as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 3
    lines: list[Line] = []
    missing: list[str] = []
    try:
        speeds, of_engine = engine(size)
        lines += of_engine
        lines += simpy(size, speeds)
    except MissingError as reason:
        missing.append(str(reason))
    parts: tuple[Callable[[Size], Iterator[Line]], ...] = (
        exact, reading, criterion, sweep, command_line, signatures, apdus, cortex_m3, encryptions,
        secured_samples,
    )  # fmt: skip
    if arguments.only_engine:
        parts = (exact, sweep)
    for part in parts:
        try:
            lines += part(size)
        except MissingError as reason:
            missing.append(str(reason))
    show(lines)
    sys.stdout.flush()
    if not arguments.only_engine:
        try:
            link(size)
        except MissingError as reason:
            missing.append(str(reason))
    for reason in missing:
        print(f"not run: {reason}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
