# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate m3`: a device profile from a benchmark's cycles on the simulated Cortex-M3.

The benchmark prints a line `name bytes cycles` for each call that it timed, of an operation or a
primitive (docs/reference/m3.md).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warifu import _core, m3
from warifu.calibrate import profile as profiles
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.parts import operations
from warifu.calibrate.profile import Condition, Entry, Law, Profile, ProfileText, Record
from warifu.calibrate.variants import Variant
from warifu.files import refuse_same
from warifu.m3 import chips

FOLDER = Path("profiles", "devices")
"""The default folder for the profile, relative to the current one."""

#: Choices that a cost may depend on (crates/core/model/src/profile/condition.rs).
CHOICES = (
    *("tls", "session", "authentication", "group", "certificate", "aead", "key_share"),
    *("chain_length", "psk_mode"),
)

_BY = "warifu calibrate m3"
_LINE = re.compile(r"(\S+)\s+(\d{1,15})\s+(\d{1,18})")
#: Quantiles of a distribution at most.
_MAX_QUANTILES = 21
#: Costs that a benchmark of a library cannot time. They count as zero: a prediction is a best case.
_LEFT_OUT = {
    "client.send.ChangeCipherSpec": "one constant byte",
    "client.receive.ChangeCipherSpec": "one constant byte",
    **{
        f"client.system.{call}": "not in the benchmark, taken as zero: predictions are a best case"
        for call in ("connect", "wake", "write", "interface")
    },
}


@dataclass(frozen=True)
class Sample:
    """A call that the benchmark timed."""

    name: str
    bytes: int
    cycles: int


@dataclass(frozen=True)
class Cost:
    """The cost of an operation, for a call and for each byte, by both readings of the rules."""

    name: str
    calls: int
    sizes: int
    """How many different sizes; with one size the cost per byte is zero."""
    call: tuple[float, float]
    """Cycles, low and high; the mean if calls of one size differ."""
    per_byte: tuple[float, float]
    off: float
    """The largest relative deviation of a call from the fit (high reading)."""
    law: Law
    """The distribution of a call's cycles without its bytes (high reading)."""


@dataclass(frozen=True)
class Outcome:
    """The result of a calibration."""

    path: Path
    run_id: str
    kind: str
    costs: tuple[Cost, ...]
    assumed: tuple[str, ...]
    """Operations that were not timed and are zero in the profile."""
    missing: tuple[str, ...]
    """Operations that a prediction for `stack` needs and the profile does not have."""
    stack: str
    """The choices of that stack; empty if nothing is missing."""
    other_core: str | None = None
    """The core that the benchmark was built for, if it is not a Cortex-M3."""
    taken: tuple[str, ...] = ()
    """Choices that costs depend on and `when` says nothing of, as they were taken: `KEY=WORD`."""


def calibrate_m3(
    elf: Path,
    mhz: float,
    *,
    options: m3.Options | None = None,
    when: Condition | None = None,
    out: Path | None = None,
    folder: Path = FOLDER,
    others: Sequence[ProfileText] = (),
) -> Outcome:
    """Runs a benchmark by both readings of the cycle rules and writes a device profile.

    `when` are the choices of a stack under which the figures hold, except those of system calls.
    `out` is the profile's file; the default is a file in `folder` named after the program. `others`
    are all existing profiles; the new one is checked with them before it is written. Raises
    CalibrateError, ValueError, WarifuError or OSError; nothing is written then.
    """
    if not (math.isfinite(mhz) and mhz > 0):
        raise ValueError(f"mhz is {mhz}: expected a clock rate in MHz, such as 100")
    options = options or m3.Options()
    path = out or folder / f"{_slug(elf.stem)}.toml"
    if path.suffix != ".toml":
        raise CalibrateError(f"{path}: expected a name that ends with .toml")
    for written_to in (path, profiles.record_path(path)):
        refuse_same(written_to, (elf, *options.files()))
    profiles.refuse_foreign(path, _BY, "choose another --out")
    if out is None:
        profiles.refuse_hiding("device", path, others, _BY)
    readings = []
    for low in (True, False):
        run = m3.run(elf, replace(options, low_reading=low))
        if not run.ok:
            raise CalibrateError(f"{elf}: the benchmark failed: {_why(run)}")
        if run.lost_output:
            raise CalibrateError(
                f"{elf}: the benchmark printed more than {m3.MAX_OUTPUT} bytes: print only one "
                "line `name bytes cycles` for each call"
            )
        readings.append(samples(run.output, elf))
    costs = fit(*readings)
    chip = chips.identity(options.chip)
    details = {
        "program": elf.name,
        "chip": chip,
        "mhz": mhz,
        "wait_states": dict(options.wait_states),
        "plain_wait_states": options.plain_wait_states,
        # Left out for a Cortex-M3's programs, so that the ids of their runs stay.
        **({} if run.other_core is None else {"built_for": run.other_core}),
        "costs": [
            {
                "name": one.name, "calls": one.calls, "call_low": _stable(one.call[0]),
                "call_high": _stable(one.call[1]), "per_byte_low": _stable(one.per_byte[0]),
                "per_byte_high": _stable(one.per_byte[1]), "off": _stable(one.off),
            }
            for one in costs
        ],
    }  # fmt: skip
    run_id = _run_id(details)
    written, assumed = _profile(path.stem, elf, run, costs, mhz, when or {}, run_id)
    _check(written, path)
    missing, stack = _missing(written, path, when or {}, others)
    profiles.write(written, Record(run_id, {"chip": chip}, details), path)
    taken = dict.fromkeys(
        f"{key}={word}" for one in costs for key, word in _unsaid(one.name, when or {}).items()
    )
    return Outcome(
        path, run_id, run.kind, tuple(costs), assumed, missing, stack, run.other_core, tuple(taken)
    )


def _unsaid(name: str, when: Condition) -> Condition:
    """What an operation's cost depends on and `when` says nothing of, as a study has it where it
    says nothing: a benchmark is of one stack, and its figures are for no other algorithm's."""
    if name not in operations():
        return {}

    def words(key: str) -> list[str]:
        value = when.get(key, ())
        return list(value) if isinstance(value, tuple) else [str(value)]

    usual: Condition = asdict(Variant())
    choices = _core.cost_choices(name, words("tls"), words("session"))
    return {key: usual[key] for key, _ in choices if key not in when}


def samples(output: bytes, elf: Path) -> list[Sample]:
    """Parses a benchmark's output. Raises CalibrateError, which names the first invalid line."""
    known = [*operations(), *_core.primitives()]
    found = []
    for number, raw in enumerate(output.split(b"\n"), start=1):
        line = raw.decode(errors="backslashreplace").strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        where = f"{elf}: line {number} of its output is {line!r}"
        if match is None:
            raise CalibrateError(
                f"{where}: expected `name bytes cycles`, such as client.send.ClientHello 0 1200500"
            )
        name = match[1]
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else "such as client.receive.Certificate or verify.ecdsa_secp256r1"
            )
            raise CalibrateError(f"{where}: unknown operation or primitive {name}: {hint}")
        found.append(Sample(name, int(match[2]), int(match[3])))
    if not found:
        raise CalibrateError(
            f"{elf}: the benchmark printed no line `name bytes cycles`: print one for each call"
        )
    return found


def fit(low: Sequence[Sample], high: Sequence[Sample]) -> list[Cost]:
    """Costs per call and per byte by least squares, in the order of first appearance."""
    if [(one.name, one.bytes) for one in low] != [(one.name, one.bytes) for one in high]:
        raise CalibrateError(
            "the benchmark did different work in its two runs: its calls and sizes must not depend "
            "on the cycles that it counts"
        )
    costs = []
    for name in dict.fromkeys(one.name for one in high):
        lines = [
            (np.array([(s.bytes, s.cycles) for s in reading if s.name == name], dtype=np.float64))
            for reading in (low, high)
        ]
        (low_call, low_byte, _), (high_call, high_byte, rest) = map(_least_squares, lines)
        sizes, cycles = lines[1].T
        expected = high_call + high_byte * sizes
        off = float(np.max(np.abs(cycles - expected) / np.maximum(expected, 1.0)))
        costs.append(
            Cost(
                name,
                len(cycles),
                len(np.unique(sizes)),
                (low_call, high_call),
                (low_byte, high_byte),
                off,
                _law(rest),
            )
        )
    return costs


def _least_squares(lines: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64]]:
    """Cycles per call and per byte, not negative, and each call's cycles without its bytes."""
    from scipy.optimize import nnls

    sizes, cycles = lines.T
    if len(np.unique(sizes)) == 1:
        return float(cycles.mean()), 0.0, cycles
    (call, byte), _ = nnls(np.column_stack([np.ones_like(sizes), sizes]), cycles)
    return float(call), float(byte), cycles - byte * sizes


def _law(rest: NDArray[np.float64]) -> Law:
    """A distribution with the mean of the calls; a constant if all are equal."""
    if np.ptp(rest) < 1.0:
        return Law.constant(float(rest.mean()))
    count = min(_MAX_QUANTILES, len(rest))
    found = Law.of_samples(np.maximum(rest, 0.0).tolist(), count)
    return found if count > 2 else Law.constant(float(rest.mean()))


def _profile(
    name: str,
    elf: Path,
    run: m3.Run,
    costs: Sequence[Cost],
    mhz: float,
    when: Condition,
    run_id: str,
) -> tuple[Profile, tuple[str, ...]]:
    ns = 1e3 / mhz
    kind, options = run.kind, run.options
    source = f"{elf.name} on a simulated Cortex-M3 ({options.chip}) at {mhz:g} MHz, high reading"
    if run.other_core is not None:
        source += f", built for {run.other_core}"
    entries = []
    primitives = frozenset(_core.primitives())
    for one in costs:
        low = f"low reading: {one.call[0] * ns:.0f} ns and {one.per_byte[0] * ns:.3f} ns a byte"
        system = ".system." in one.name
        entries.append(
            Entry(
                one.name,
                {} if system or one.name in primitives else when | _unsaid(one.name, when),
                one.law.scaled(ns),
                per_byte_ns=one.per_byte[1] * ns,
                source=source,
                note=low,
                kind=kind,
                is_primitive=one.name in primitives,
            )
        )
    # A profile reads best, and quickest, with its primitives before its operations.
    entries.sort(key=lambda entry: not entry.is_primitive)
    timed = {one.name for one in costs}
    only_primitives = timed <= primitives
    left_out = {
        what: why for what, why in _LEFT_OUT.items() if what not in timed and not only_primitives
    }
    for what, why in left_out.items():
        entries.append(Entry(what, {}, Law.constant(0.0), source=why, kind="assumed"))
    waits = ", ".join(f"{memory} {n}" for memory, n in options.wait_states.items())
    description = f"simulated Cortex-M3, memories of {chips.identity(options.chip)}, {mhz:g} MHz"
    plain = ", each access" if options.plain_wait_states else ""
    description += f", wait states (assumed) {waits}{plain}" if waits else ", no wait states"
    if run.other_core is not None:
        description += f"; the program was built for {run.other_core}, whose timing differs"
    written = Profile(
        run_id, description, _BY, None, tuple(entries), name=name, kind=kind, written_by=_BY
    )
    return written, tuple(left_out)


def _check(written: Profile, path: Path) -> None:
    """Raises CalibrateError if predictions cannot read the profile: unknown words in `when`."""
    mistake = _core.profile_mistake(("device", written.name, written.toml(), str(path)))
    if mistake is not None:
        raise CalibrateError(f"--when: {mistake}")


def _missing(
    written: Profile, path: Path, when: Condition, others: Sequence[ProfileText]
) -> tuple[tuple[str, ...], str]:
    """The operations that the profile has no cost for in the timed stack, and that stack's choices
    as text. Choices that are not in `when` have their defaults. None for a profile of primitives
    alone."""
    if all(entry.is_primitive for entry in written.entries):
        return (), ""
    choices = {key: str(value[0] if isinstance(value, tuple) else value)
               for key, value in when.items()}  # fmt: skip
    signs = any(entry.operation == "client.sign" for entry in written.entries)
    choices.setdefault("authentication", "mutual" if signs else "server")
    mine = ("device", written.name, written.toml(), str(path))
    question = [("device", written.name), ("server", written.name), ("link", "loopback")]
    question += [(f"stack.{key}", word) for key, word in choices.items()]
    try:
        study = _core.Study.from_choices(
            question, [*(other for other in others if other[:2] != mine[:2]), mine]
        )
    except _core.WarifuError:
        # The choices fit no stack: there is no prediction to warn about.
        return (), ""
    missing, _ = _core.missing_operations(study, 0)
    columns = study.cases[0].columns
    stack = ", ".join(f"{key}={columns[key]}" for key in (*CHOICES[:5], "cipher_suite"))
    return tuple(missing), stack if missing else ""


def condition(words: Sequence[str]) -> Condition:
    """Parses `key=word,word` of the command line. Raises ValueError."""
    found: dict[str, str | int | tuple[str, ...]] = {}
    for text in words:
        key, _, value = text.partition("=")
        if key not in CHOICES or not value or key in found:
            raise ValueError(f"{text}: expected KEY=WORD once for each of {', '.join(CHOICES)}")
        parts = tuple(value.split(","))
        if key == "chain_length" and value.isdecimal():
            found[key] = int(value)
        else:
            found[key] = parts[0] if len(parts) == 1 else parts
    return found


def _why(run: m3.Run) -> str:
    return run.message if run.code is None else f"its exit code is {run.code}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "m3"


def _stable(value: float) -> float:
    """A fitted figure without the digits in which processors differ: a library of linear algebra
    sums in another order where it finds wider registers."""
    return round(value, 6)


def _run_id(details: dict[str, Any]) -> str:
    """The same for the same cycles on the same chip: a simulation can be repeated exactly."""
    found = json.dumps(details, sort_keys=True).encode()
    return f"m3-{hashlib.sha256(found).hexdigest()[:16]}"
