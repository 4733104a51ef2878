# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The costs of DDS samples from what was timed of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from warifu.calibrate.part import Target
from warifu.calibrate.profile import Condition, Entry, Law

SAMPLE, PART = "DdsSample", "DdsPart"
PROTECTIONS = ("DdsProtectedPayload", "DdsProtectedSubmessage", "DdsProtectedMessage")
MESSAGES = (SAMPLE, PART, *PROTECTIONS)
"""As operations have them (crates/core/model/src/operation.rs)."""

ROLES = ("client", "server")
METRICS = ("dds.one_way", "dds.round_trip")
CLIENT_WRITE, SERVER_WRITE = "client write", "server write"

_SENDS = (
    "writes in loopback runs that are not judged, less the ciphers: the client's, and the server's "
    "of samples in one piece"
)
_RECEIVES = "loopback runs that are not judged, less all else that is predicted of them"
_NOTE_PROTECTION = "the plugin's own work, beside the cipher's primitive"

Floats = NDArray[np.float64]
Predict = Callable[[Sequence[Entry]], Mapping[Target, float]]
"""The medians with these costs, ns."""


@dataclass(frozen=True)
class Step:
    """Something that an end does for a sample."""

    role: str
    verb: str
    """`send`, `receive`, or `system` for the system calls of sending."""
    message: str
    bytes: int
    primitive: str | None
    """What its cipher does."""
    again: bool
    """Whether the end has done the same before in this direction (warifu-sim, program.rs)."""


@dataclass(frozen=True)
class Steps:
    """All of them, in their order."""

    steps: tuple[Step, ...]

    @staticmethod
    def of(rows: Iterable[Mapping[str, Any]]) -> Steps:
        """From `_core.step_costs`."""
        seen: set[tuple[str, str, str]] = set()
        steps = []
        for row in rows:
            role, verb, message = str(row["operation"]).split(".", 2)
            kind = (role, verb, message)
            step = Step(role, verb, message, row["bytes"], row["primitive"], kind in seen)
            steps.append(step)
            seen.add(kind)
        return Steps(tuple(steps))

    def sending(self, role: str) -> list[Step]:
        """What is done in a write, but for its system calls."""
        return [step for step in self.steps if (step.role, step.verb) == (role, "send")]


@dataclass(frozen=True)
class Known:
    """What the ciphers' bench found."""

    costs: Mapping[str, Entry]

    @staticmethod
    def of(entries: Iterable[Entry]) -> Known:
        """Of entries without conditions, by name."""
        return Known({entry.operation: entry for entry in entries if not entry.when})

    def ns(self, name: str, bytes_: int) -> float:
        """A call for so many bytes."""
        entry = self.costs[name]
        return entry.warm.median_ns + entry.per_byte_ns * bytes_


@dataclass(frozen=True)
class Measured:
    """What was measured of the calibration's cases: medians and their errors, ns, by case id and
    metric or write; the plugin and the steps of each case."""

    medians_ns: Mapping[Target, float]
    errors_ns: Mapping[Target, float]
    crypto: Mapping[str, str]
    steps: Mapping[str, Steps]

    def cases(self, crypto: str) -> list[str]:
        """The ids of a plugin's cases."""
        return [case for case, of in self.crypto.items() if of == crypto]


def entries(
    measured: Measured,
    known: Known,
    shape: Law,
    predict_plain: Predict,
    predict_secured: Predict,
) -> list[Entry]:
    """The costs of the middleware and of each plugin. `shape` is the form of the middleware's
    laws, with median 1; a plugin's are constant."""
    sends = _send_plain(measured)
    sending = [*_system_entries(), *_send_entries(sends, shape)]
    plain = _receive_plain(measured, shape, sending, predict_plain)
    plugins = sorted({of for of in measured.crypto.values() if of != "none"})
    own = {crypto: _send_secured(measured, known, sends, crypto) for crypto in plugins}
    return _receive_secured(measured, shape, (plain, own), predict_secured)


# ---- what sending costs: linear in the writes ----


@dataclass(frozen=True)
class Sends:
    """Of the middleware, ns: a sample of each role, a further part, a byte."""

    sample: Mapping[str, float]
    part: float
    byte: float


@dataclass(frozen=True)
class Own:
    """A plugin's work beside its cipher, ns: for a sample, whatever protects it; for the first call
    of a layer after a pause; for another call; and for a byte of a layer, which the middleware
    copies as often as it likes."""

    sample: float
    first: Mapping[str, float]
    again: float
    byte: Mapping[str, float]


_WRITES = {"client": CLIENT_WRITE, "server": SERVER_WRITE}


def _system_entries() -> list[Entry]:
    """Nothing: the writes that were timed have their system calls in them, and what receiving costs
    is found with the wake-ups, which are no event loop's here but two threads'."""
    every: Condition = {"crypto": ("none", "builtin", "warifu")}
    return [
        Entry(
            f"{role}.system.{call}", every, Law.constant(0.0),
            source=_SENDS if call == "write" else _RECEIVES,
            note=f"in {SAMPLE} and {PART}", kind="simulated",
        )
        for role in ROLES
        for call in ("write", "wake")
    ]  # fmt: skip


def _send_plain(measured: Measured) -> Sends:
    names = [*ROLES, PART, "byte"]
    rows, goals = [], []
    for case in measured.cases("none"):
        for role in ROLES:
            steps = measured.steps[case].sending(role)
            if not _is_undisturbed(role, steps):
                continue
            row = dict.fromkeys(names, 0.0)
            goal = measured.medians_ns[case, _WRITES[role]]
            for step in steps:
                row[role if step.message == SAMPLE else PART] += 1.0
                # A part's bytes are the sample's.
                row["byte"] += step.bytes * (step.message == SAMPLE)
            rows.append([row[name] / goal for name in names])
            goals.append(1.0)
    client, server, part, byte = _non_negative(rows, goals)
    return Sends({"client": client, "server": server}, part, byte)


def _is_undisturbed(role: str, steps: Sequence[Step]) -> bool:
    """Whether a write is the end's own work alone: the link's program is on the server's processor
    (`warifu.lab.dds.driver`), and takes a burst's first packets while the others are written."""
    return role == "client" or all(step.message != PART for step in steps)


_OWN = ["sample", "again"]
_OWN += [f"{what} {layer}" for what in ("first", "byte") for layer in PROTECTIONS]
"""What a plugin's own work is made of."""


def _send_secured(measured: Measured, known: Known, sends: Sends, crypto: str) -> Own:
    rows, goals = [], []
    for case in measured.cases(crypto):
        for role in ROLES:
            steps = measured.steps[case].sending(role)
            if not _is_undisturbed(role, steps):
                continue
            row = dict.fromkeys(_OWN, 0.0) | {"sample": 1.0}
            left = goal = measured.medians_ns[case, _WRITES[role]]
            for step in steps:
                if step.message in PROTECTIONS:
                    left -= known.ns(step.primitive or "", step.bytes)
                    row["again" if step.again else f"first {step.message}"] += 1.0
                    row[f"byte {step.message}"] += step.bytes
                else:
                    whole = sends.sample[role] + sends.byte * step.bytes
                    left -= whole if step.message == SAMPLE else sends.part
            rows.append([row[name] / goal for name in _OWN])
            goals.append(left / goal)
    found = dict(zip(_OWN, _non_negative(rows, goals), strict=True))
    first, byte = (
        {layer: found[f"{what} {layer}"] for layer in PROTECTIONS} for what in ("first", "byte")
    )
    return Own(found["sample"], first, found["again"], byte)


def _non_negative(rows: Sequence[Sequence[float]], goals: Sequence[float]) -> list[float]:
    matrix = np.array(rows, dtype=np.float64)
    # Bytes are many and cost little: columns of one size keep the search exact.
    sizes = np.abs(matrix).max(axis=0)
    sizes[sizes == 0.0] = 1.0
    found, _ = nnls(matrix / sizes, np.array(goals, dtype=np.float64))
    return [float(value) for value in found / sizes]


def _send_entries(sends: Sends, shape: Law) -> list[Entry]:
    found = []
    for role in ROLES:
        laws = {
            SAMPLE: shape.scaled(sends.sample[role]),
            # Many draws of a skewed law would add up to more than as many medians.
            PART: Law.constant(sends.part),
        }
        for message, law in laws.items():
            found.append(
                Entry(
                    f"{role}.send.{message}", {}, law,
                    per_byte_ns=sends.byte if message == SAMPLE else 0.0,
                    source=_SENDS, kind="simulated",
                )
            )  # fmt: skip
    return found


# ---- what receiving costs: what the simulator's medians lack ----


def _receive_plain(
    measured: Measured, shape: Law, sends: Sequence[Entry], predict: Predict
) -> list[Entry]:
    """A sample after a pause, one without; a further part and a byte of each role."""

    def made(values: Floats) -> list[Entry]:
        cold, warm, *others = (float(value) for value in values)
        receives = []
        for role, part, byte in zip(ROLES, others[:2], others[2:], strict=True):
            receives += [
                Entry(
                    f"{role}.receive.{SAMPLE}", {}, shape.scaled(warm), shape.scaled(cold),
                    per_byte_ns=byte, source=_RECEIVES, kind="simulated",
                ),
                Entry(
                    f"{role}.receive.{PART}", {}, Law.constant(part),
                    source=_RECEIVES, kind="simulated",
                ),
            ]  # fmt: skip
        return [*sends, *receives]

    scales = [30_000.0, 20_000.0, 15_000.0, 15_000.0, 0.3, 0.3]
    return made(_fit(measured, measured.cases("none"), scales, made, predict))


def _receive_secured(
    measured: Measured,
    shape: Law,
    found: tuple[Sequence[Entry], Mapping[str, Own]],
    predict: Predict,
) -> list[Entry]:
    """What each plugin adds to a sample, to a layer's first call after a pause, to another."""
    plain, own = found
    if not own:
        return list(plain)

    def made(values: Floats) -> list[Entry]:
        secured = []
        for (crypto, sending), of in zip(own.items(), values.reshape(len(own), -1), strict=True):
            sample, again, *firsts = (float(value) for value in of)
            first = dict(zip(PROTECTIONS, firsts, strict=True))
            # A byte is copied on its way in as it was on its way out.
            receiving = Own(sample, first, again, sending.byte)
            for verb, costs in (("send", sending), ("receive", receiving)):
                for role in ROLES:
                    secured += _protections(role, verb, crypto, costs)
                of_samples = [
                    entry for entry in plain if entry.operation.endswith(f".{verb}.{SAMPLE}")
                ]
                secured += [_slower(entry, crypto, costs.sample) for entry in of_samples]
        return [*plain, *secured]

    cases = [case for case, of in measured.crypto.items() if of != "none"]
    scales = [5_000.0, 3_000.0, *[5_000.0] * len(PROTECTIONS)] * len(own)
    return made(_fit(measured, cases, scales, made, predict))


def _slower(entry: Entry, crypto: str, more_ns: float) -> Entry:
    def law(of: Law) -> Law:
        return Law(tuple(value + more_ns for value in of.quantiles_ns))

    cold = None if entry.cold is None else law(entry.cold)
    return Entry(
        entry.operation, {"crypto": crypto}, law(entry.warm), cold,
        entry.per_byte_ns, entry.source, kind=entry.kind,
    )  # fmt: skip


def _protections(role: str, verb: str, crypto: str, own: Own) -> list[Entry]:
    source = _SENDS if verb == "send" else _RECEIVES
    return [
        Entry(
            f"{role}.{verb}.{message}", {"crypto": crypto},
            Law.constant(own.again), Law.constant(own.first[message]),
            own.byte[message], source, _NOTE_PROTECTION, "simulated",
        )
        for message in PROTECTIONS
    ]  # fmt: skip


def _fit(
    measured: Measured,
    cases: Sequence[str],
    scales: Sequence[float],
    made: Callable[[Floats], Sequence[Entry]],
    predict: Predict,
) -> Floats:
    """Values, none below 0, with which the predicted medians of these cases are those measured.

    `scales` are orders of magnitude: a cost starts at one of them.
    """
    targets = [(case, metric) for case in cases for metric in METRICS]
    goal = np.array([measured.medians_ns[target] for target in targets])
    # Costs that were found one by one add up to no less than some hundredths of the whole.
    errors = np.hypot([measured.errors_ns[target] for target in targets], 0.02 * goal)
    size = np.array(scales)

    def residuals(point: Floats) -> Floats:
        answer = predict(made((point - 1.0) * size))
        differences = np.array([answer[target] for target in targets]) - goal
        return np.asarray(differences / errors)

    # Around 1, since steps are relative: a twentieth of a cost's scale at least, because simulated
    # medians move in small steps.
    found = least_squares(
        residuals,
        np.full(len(size), 2.0),
        diff_step=0.05,
        bounds=(1.0, np.inf),
        max_nfev=40,
        xtol=1e-3,
        ftol=1e-4,
    )
    return np.asarray((found.x - 1.0) * size)
