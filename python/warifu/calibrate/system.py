# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the operating system and the event loops cost: fitted to loopback runs.

A wake-up cannot be timed by itself from outside: it begins in an interrupt and ends in a program.
So its cost, and that of the other steps that the simulator charges outside TLS, is what is left of
real connections' times when the computing that the bench timed is taken away. The simulator itself
says how often each cost stands on the critical path: it predicts the loopback runs, and the costs
are changed until its medians are those that were measured.

The runs are made for this alone, at round-trip times (0 and 20 ms) of which only the first is among
those that studies are judged by, and no run that is judged is ever used. Each cost starts from a
plain assumption (`PARAMETERS`) and moves away from it only as far as the runs demand, so that costs
that the runs cannot tell apart stay plausible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from warifu.calibrate.part import Target
from warifu.calibrate.profile import Entry, Law

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Parameter:
    """A cost to be found: where it starts, and by which factor it may well be off."""

    operation: str
    temperature: str
    start_ns: float
    factor: float = 2.0


PARAMETERS: tuple[Parameter, ...] = (
    Parameter("client.system.connect", "both", 40_000),
    Parameter("client.system.wake", "warm", 30_000),
    Parameter("client.system.wake", "cold", 60_000),
    Parameter("client.system.write", "warm", 15_000),
    Parameter("client.system.write", "cold", 20_000),
    Parameter("server.system.accept", "both", 60_000),
    Parameter("server.system.wake", "warm", 30_000),
    Parameter("server.system.wake", "cold", 60_000),
    Parameter("server.system.write", "warm", 15_000),
    Parameter("server.system.write", "cold", 20_000),
    Parameter("server.system.http_respond", "warm", 50_000),
    Parameter("server.system.http_respond", "cold", 80_000),
    Parameter("interface", "both", 12_000),
)
"""Starting points: orders of magnitude of system calls and wake-ups on servers of the 2020s."""


@dataclass(frozen=True)
class Scale:
    """How much longer TLS computing takes in a real process than in the bench."""

    role: str
    temperature: str
    factor: float


SCALES: tuple[Scale, ...] = (
    Scale("client", "warm", 1.1),
    Scale("client", "cold", 1.25),
    Scale("server", "warm", 1.1),
    Scale("server", "cold", 1.25),
)
"""In a real process other memory, other processors and the kernel's own work lie between two
messages; nginx allocates besides. One factor a side and temperature stands for all of that."""

SHARES: tuple[str, ...] = ("client", "server")
"""Sides with a share by which a processor that has only just waited computes as one after a rest.
The bench repeats a message at once; in a real connection its code was used last in the connection
before, so nothing but what messages have in common is warm. That is how the bench's rested
connections begin, whose messages follow each other without a wait; its cold ones wait before each
flight, and pay for that besides. 0: as the bench's warm, 1: as rested."""

SHARE_START, SHARE_WIDTH, SHARE_MOST = 0.5, 0.5, 2.0
"""Where the search for a share begins, by how much it may be off, and what it cannot exceed."""


@dataclass(frozen=True)
class Costs:
    """A point in the space of all parameters: PARAMETERS, then SCALES, then SHARES."""

    values: Floats

    @staticmethod
    def start() -> Costs:
        """Where the search begins."""
        begin = [parameter.start_ns for parameter in PARAMETERS]
        return Costs(np.array(begin + [1.0] * len(SCALES) + [SHARE_START] * len(SHARES)))

    def entries(self, shape: Law, source: str) -> list[Entry]:
        """The system's entries. `shape` is the form of their laws, with median 1."""
        found: dict[str, dict[str, float]] = {}
        for parameter, value in zip(PARAMETERS, self.values, strict=False):
            slot = found.setdefault(parameter.operation, {})
            for temperature in ("warm", "cold"):
                if parameter.temperature in ("both", temperature):
                    slot[temperature] = float(value)
        interface = found.pop("interface")
        # A packet passes both ends' interfaces; the link's forwarding is shared out between them.
        for role in ("client", "server"):
            found[f"{role}.system.interface"] = interface
        return [
            Entry(
                operation,
                {},
                shape.scaled(by_temperature["warm"]),
                shape.scaled(by_temperature["cold"]),
                source=source,
                kind="simulated",
            )
            for operation, by_temperature in found.items()
        ]

    def scaled(self, entry: Entry) -> Entry:
        """A bench's entry as it is in a real process."""
        after = self.values[len(PARAMETERS) :].tolist()
        factors = {
            (scale.role, scale.temperature): value
            for scale, value in zip(SCALES, after, strict=False)
        }
        shares = dict(zip(SHARES, after[len(SCALES) :], strict=True))
        role = entry.operation.partition(".")[0]
        warm, cold = factors[role, "warm"], factors[role, "cold"]
        coldest = entry.cold or entry.warm
        return Entry(
            entry.operation,
            entry.when,
            entry.warm.towards(entry.rested or coldest, shares[role]).scaled(warm),
            coldest.scaled(cold),
            entry.per_byte_ns * warm,
            f"{entry.source}, times a factor fitted by simulation",
            entry.note,
            kind="simulated",
            # The bench's own: nothing was used just before.
            rested=None if entry.rested is None else entry.rested.scaled(warm),
        )

    def named(self) -> dict[str, float]:
        """For the record: ns, and factors and shares without unit."""
        names = [f"{parameter.operation} {parameter.temperature}" for parameter in PARAMETERS]
        names += [f"{scale.role} computing {scale.temperature}" for scale in SCALES]
        names += [f"{role} share of a rest" for role in SHARES]
        return {
            name: round(float(value), 3) for name, value in zip(names, self.values, strict=True)
        }


@dataclass(frozen=True)
class Fit:
    """Where the search ended."""

    costs: Costs
    predicted_ns: dict[Target, float]
    evaluations: int


def fit(
    measured_ns: Mapping[Target, float],
    errors_ns: Mapping[Target, float],
    predict: Callable[[Costs], Mapping[Target, float]],
) -> Fit:
    """Finds the costs whose predicted medians are the measured ones.

    `measured_ns` and `errors_ns`: median and its standard error by target. `predict` gives the same
    targets for any costs. The search minimises the squares of the differences in units of their
    errors, plus those of the logarithms of the costs' ratios to their starts in units of their
    factors' logarithms (a log-normal prior; a normal one for the shares); beyond twice the error a
    difference counts less.
    """
    targets = sorted(measured_ns)
    goal = np.array([measured_ns[target] for target in targets])
    errors = np.array([errors_ns[target] for target in targets])
    start = Costs.start().values
    count = len(start) - len(SHARES)
    factors = [parameter.factor for parameter in PARAMETERS] + [scale.factor for scale in SCALES]
    widths = np.append(np.log(np.array(factors)), [SHARE_WIDTH] * len(SHARES))

    def costs_at(point: Floats) -> Costs:
        away = point - 1.0
        scaled = start[:count] * np.exp(away[:count])
        return Costs(np.concatenate((scaled, start[count:] + away[count:])))

    def residuals(point: Floats) -> Floats:
        answer = predict(costs_at(point))
        differences = (np.array([answer[target] for target in targets]) - goal) / errors
        return np.concatenate((differences, (point - 1.0) / widths))

    least, most = np.full(len(start), -5.0), np.full(len(start), 4.0)
    least[count:] = 1.0 - SHARE_START
    most[count:] = 1.0 + SHARE_MOST - SHARE_START
    # Simulated medians move in small steps, so derivatives are taken over a tenth; steps are
    # relative, so the search is around 1. A run during which the machine was slower than in the
    # others is far off and counts by its distance alone, not the square (soft_l1). It takes some
    # 25 rounds; one that ends early leaves all costs near their starts.
    found = least_squares(
        residuals,
        np.ones_like(start),
        diff_step=0.1,
        x_scale=0.3,
        loss="soft_l1",
        f_scale=2.0,
        bounds=(least, most),
        max_nfev=80,
        xtol=1e-3,
        ftol=1e-3,
    )
    costs = costs_at(found.x)
    answer = predict(costs)
    return Fit(costs, {target: float(answer[target]) for target in targets}, int(found.nfev))
