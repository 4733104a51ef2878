# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A device profile as calibration writes it, and the record beside it.

`this-host.toml` is a profile like any other; `this-host.calibration.json` beside it says on what
machine and with which versions it was made, so that a stale one can be told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from warifu import _core, tools
from warifu.calibrate.errors import CalibrateError
from warifu.files import PROFILE_BYTES, FileRefused, read_text, replace_text

DEVICE = "this-host"
"""Name of the profile."""

DEFAULT_PROFILE = (tools.checkout() or Path()) / "profiles" / "devices" / f"{DEVICE}.toml"
"""Where it is written if nothing else is said; not under version control."""

ProfileText = tuple[str, str, str, str]
"""Kind, name, text and file, as `warifu._core` takes profiles."""

Condition = dict[str, str | int | tuple[str, ...]]
"""Choices of a stack under which a figure holds, by their names in a profile's `when`."""


@dataclass(frozen=True)
class Law:
    """A law of durations: evenly spaced quantiles from 0 to 1, ns, not falling."""

    quantiles_ns: tuple[float, ...]

    @staticmethod
    def constant(value_ns: float) -> Law:
        """Always the same."""
        return Law((value_ns,))

    @staticmethod
    def of(quantiles_ns: Sequence[float], mean_ns: float) -> Law:
        """From a sample's quantiles and mean, with the last such that the law has that mean.

        The maximum of some hundred samples is an accident; taken as it is, linear interpolation
        towards it would give its twentieth too much weight.
        """
        values = [float(value) for value in quantiles_ns]
        steps = len(values) - 1
        if steps < 1:
            return Law(tuple(values))
        last = 2 * (steps * mean_ns - sum(values[1:-1])) - values[0]
        values[-1] = max(values[-2], last)
        return Law(tuple(values))

    @staticmethod
    def of_samples(samples_ns: Sequence[float], count: int = 21) -> Law:
        """From samples, by `count` quantiles."""
        values = np.asarray(samples_ns, dtype=np.float64)
        return Law.of(np.quantile(values, np.linspace(0, 1, count)).tolist(), float(values.mean()))

    @property
    def median_ns(self) -> float:
        """The 50 % quantile, linearly interpolated."""
        place = 0.5 * (len(self.quantiles_ns) - 1)
        low = int(place)
        high = min(low + 1, len(self.quantiles_ns) - 1)
        share = place - low
        return self.quantiles_ns[low] * (1 - share) + self.quantiles_ns[high] * share

    @property
    def mean_ns(self) -> float:
        """The exact mean of the interpolated law."""
        values = self.quantiles_ns
        if len(values) == 1:
            return values[0]
        inner = sum(values[1:-1]) + (values[0] + values[-1]) / 2
        return inner / (len(values) - 1)

    def scaled(self, factor: float) -> Law:
        """All durations times `factor`."""
        return Law(tuple(value * factor for value in self.quantiles_ns))

    def towards(self, other: Law, share: float) -> Law:
        """This one's form, with its median moved by a share of the way to the other's.

        The other may be of few samples, of which one is an accident: taken by its quantiles, that
        would be each twentieth time's, and a share above 1 would multiply it.
        """
        own, its = self.median_ns, other.median_ns
        median = max(0.0, own + share * (its - own))
        return self.scaled(median / own) if own > 0.0 else Law.constant(median)

    def toml(self) -> str:
        """As profiles write it, whole nanoseconds."""
        values = [max(0, round(value)) for value in self.quantiles_ns]
        if len(values) == 1:
            return f'"{values[0]} ns"'
        return f'{{ quantiles = [{", ".join(map(str, values))}], unit = "ns" }}'


@dataclass(frozen=True)
class Entry:
    """The cost of an operation under some conditions, or of a primitive under all."""

    operation: str
    when: Condition
    warm: Law
    cold: Law | None = None
    per_byte_ns: float = 0.0
    source: str = ""
    note: str = ""
    kind: str = "measured"
    """*simulated* where the figure was found by simulating the runs it comes from."""
    is_primitive: bool = False
    """Whether `operation` is the name of a primitive."""
    rested: Law | None = None
    """In a connection that begins after a rest, warm or cold."""

    @property
    def is_system(self) -> bool:
        """Whether it is what the operating system takes."""
        return self.operation.split(".")[1:2] == ["system"]

    def scaled(self, factor: float) -> Entry:
        """All of it times `factor`."""
        laws = (None if law is None else law.scaled(factor) for law in (self.cold, self.rested))
        made = self.having(self.warm.scaled(factor), *laws)
        return replace(made, per_byte_ns=self.per_byte_ns * factor)

    def having(self, warm: Law, cold: Law | None, rested: Law | None) -> Entry:
        """The same with other laws."""
        return replace(self, warm=warm, cold=cold, rested=rested)

    def toml(self) -> str:
        """Its `[[operation]]` or `[[primitive]]` section."""
        section = "primitive" if self.is_primitive else "operation"
        lines = [f"[[{section}]]", f"name = {json.dumps(self.operation)}"]
        if self.when:
            lines.append(f"when = {_inline(self.when)}")
        lines.append(f"warm = {self.warm.toml()}")
        if self.cold is not None:
            lines.append(f"cold = {self.cold.toml()}")
        if self.rested is not None:
            lines.append(f"rested = {self.rested.toml()}")
        if self.per_byte_ns:
            lines.append(f'per_byte = "{self.per_byte_ns:.3f} ns"')
        if self.source:
            lines += [f"source = {json.dumps(self.source)}", f"kind = {json.dumps(self.kind)}"]
        if self.note:
            lines.append(f"note = {json.dumps(self.note)}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Speed:
    """What all computing of a connection has in common (crates/core/model/src/profile/speed.rs)."""

    connection: tuple[float, ...]
    """Evenly spaced quantiles of the factor, from 0 to 1, not falling."""
    sitting: float = 0.0
    """Standard deviation of the logarithm of a whole part's."""
    sitting_system: float | None = None
    """The same of system calls; as what computes if None."""
    source: str = ""
    waited: tuple[float, ...] | None = None
    """The quantiles of what is computed after a wait, as `connection`; the same if None."""

    def toml(self) -> str:
        """The `[speed]` section."""
        laws = {"connection": self.connection, "waited": self.waited}
        lines = ["[speed]"] + [
            f"{name} = [{', '.join(f'{one:.4f}' for one in law)}]"
            for name, law in laws.items()
            if law is not None
        ]
        lines.append(f"sitting = {self.sitting:.4f}")
        if self.sitting_system is not None:
            lines.append(f"sitting_system = {self.sitting_system:.4f}")
        if self.source:
            lines += [f"source = {json.dumps(self.source)}", 'kind = "simulated"']
        return "\n".join(lines) + "\n"


def whatever(operation: str) -> Condition:
    """The condition of a cost that holds whatever an operation's cost may depend on."""
    return {key: tuple(words) for key, words in _core.cost_choices(operation)}


_SCOPE = {
    "warifu calibrate host": "the machine that wrote it",
    "warifu calibrate m3": "the program that was run",
}


@dataclass(frozen=True)
class Profile:
    """All entries, with what they have in common."""

    run_id: str
    description: str
    source: str
    idle_threshold_ns: int | None
    """None where nothing is slower after a pause."""
    entries: tuple[Entry, ...]
    name: str = DEVICE
    kind: str = "simulated"
    """Of what an entry does not say it of."""
    written_by: str = "warifu calibrate host"
    speed: Speed | None = None
    rest_threshold_ns: int | None = None
    """None where nothing is slower after a rest."""
    calibration_cases: tuple[Mapping[str, str], ...] = ()
    """The cases whose runs the costs were found from (crates/core/model/src/profile/
    calibration_case.rs)."""

    def toml(self) -> str:
        """The file's text."""
        head = [
            "# SPDX-License-Identifier: Apache-2.0 OR MIT",
            f"# Written by `{self.written_by}`; holds for {_SCOPE[self.written_by]} alone.",
            f"name = {json.dumps(self.name)}",
            f"description = {json.dumps(self.description)}",
            f"source = {json.dumps(self.source)}",
            f"kind = {json.dumps(self.kind)}",
            f"run_id = {json.dumps(self.run_id)}",
        ]
        if self.idle_threshold_ns is not None:
            head.append(f'idle_threshold = "{self.idle_threshold_ns} ns"')
        if self.rest_threshold_ns is not None:
            head.append(f'rest_threshold = "{self.rest_threshold_ns} ns"')
        if self.calibration_cases:
            rows = (f"  {_inline(dict(case))}," for case in self.calibration_cases)
            head += ["calibration_cases = [", *rows, "]"]
        if self.speed is not None:
            head += ["", self.speed.toml().rstrip()]
        return "\n".join([*head, "", *(entry.toml() for entry in self.entries)])


@dataclass
class Record:
    """What `this-host.calibration.json` says."""

    run_id: str
    machine: dict[str, str]
    """`kernel`, `openssl`, `nginx`, `processor`: what makes the profile stale if it changes; of a
    Cortex-M3 simulator `chip`."""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def pace_ns(self) -> int | None:
        """How fast the machine was (``environment.pace_ns``); None in records of older versions."""
        pace = self.details.get("pace_ns")
        return pace if isinstance(pace, int) else None


def record_path(profile: Path) -> Path:
    """Where the record of a profile is."""
    return profile.with_name(f"{profile.stem}.calibration.json")


def read_record(profile: Path) -> Record:
    """The record of a profile. Raises OSError or ValueError if there is none that can be read."""
    try:
        value = json.loads(read_text(record_path(profile), PROFILE_BYTES))
    except (FileRefused, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict) or not isinstance(value.get("machine"), dict):
        raise ValueError("is not a calibration record")
    details = value.get("details", {})
    if not isinstance(details, dict):
        raise ValueError("its details are no object")
    return Record(str(value.get("run_id", "")), value["machine"], details)


def write(profile: Profile, record: Record, path: Path) -> None:
    """Writes both files, each atomically, the profile last. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {"run_id": record.run_id, "machine": record.machine, "details": record.details}
    replace_text(record_path(path), json.dumps(value, indent=2) + "\n")
    replace_text(path, profile.toml())


def refuse_hiding(kind: str, path: Path, others: Sequence[ProfileText], by: str) -> None:
    """Raises CalibrateError where a profile would come before another of its name, which `by` did
    not write: the nearer is taken, and none goes out of sight by accident."""
    for other, name, text, file in others:
        if (other, name) == (kind, path.stem) and by not in text:
            raise CalibrateError(f"{path}: would hide {file}: choose another name with --out")


def refuse_foreign(path: Path, by: str, hint: str, mark: str = "") -> None:
    """Raises CalibrateError where a file is there that ``by`` did not write: a profile that someone
    wrote by hand is not replaced. ``mark`` is what it writes into each, its name by default."""
    try:
        text = read_text(path, PROFILE_BYTES)
    except FileNotFoundError:
        return
    except FileRefused as error:
        raise CalibrateError(str(error)) from None
    if (mark or by) not in text:
        raise CalibrateError(f"{path}: was not written by `{by}`: {hint}")


def _inline(when: Condition) -> str:
    def value(item: str | int | tuple[str, ...]) -> str:
        return json.dumps(list(item) if isinstance(item, tuple) else item)

    return "{ " + ", ".join(f"{key} = {value(item)}" for key, item in when.items()) + " }"
