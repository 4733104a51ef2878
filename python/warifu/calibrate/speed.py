# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What all computing of a connection has in common: found from whole connections.

Costs that are drawn step by step nearly cancel over a connection, while a machine that is slow for
a moment is slow for all of it. So whole connections spread more than the sum of their steps, and
each step's own times, which were measured over many connections, hold the common slowness as well.
Both are taken apart here: a factor that the computing of each role in a connection shares, such
that the simulator's connections spread as those that were measured, and the steps' own laws without
it (`crates/core/model/src/profile/speed.rs` says what the simulator makes of them).

The connections are those of the calibration's own runs without network delay, each divided by the
median of the part that it was measured in: what a whole part is slower than another is no
connection's, and is told beside it (`sitting`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from warifu.calibrate.profile import Entry, Law, Speed

Floats = NDArray[np.float64]

ROUNDS = 4
"""How often the factor is found and taken out of the steps' laws, each by the other."""

STEPS = 3
"""Corrections of the factor in each round."""

MOST, LEAST = 3.0, 1 / 3
"""How much slower or quicker a connection may be than the median one. What is beyond is an accident
(the hypervisor took the processor for milliseconds), which a factor of all steps is no image of."""

SOURCE = "spread of whole loopback connections that are not judged, beyond that of their steps"

Parts = Mapping[str, Sequence[Floats]]
"""Whole connections' times, ns, by case and part."""

Simulate = Callable[[Sequence[Entry], Speed], Mapping[str, Floats]]
"""Whole connections of each case, ns, with these costs and this speed; many of each."""


@dataclass(frozen=True)
class Fit:
    """What was found."""

    speed: Speed
    entries: tuple[Entry, ...]
    """The costs without what connections have in common."""
    connections: int
    """From how many connections."""


def fit(entries: Sequence[Entry], measured: Parts, simulate: Simulate) -> Fit:
    """Takes apart what connections have in common and what their steps have each for itself.

    `entries` are costs whose laws hold both. The median connection stays as it was measured, and
    each cost's mean, times that of the factor, what it was.
    """
    whole = np.sort(
        np.concatenate([_relative(part) for some in measured.values() for part in some])
    )
    places = np.linspace(0.0, 1.0, _count(whole.size))
    goal = np.quantile(whole, places)
    goal[-1] = _last(goal, float(whole.mean()))
    factor = np.ones_like(goal)
    own = tuple(entries)
    for _ in range(ROUNDS):
        for _ in range(STEPS):
            found = simulate(own, Speed(tuple(factor)))
            drawn = np.concatenate([_relative(found[case]) for case in measured])
            factor = _law(factor * goal / np.quantile(drawn, places))
        own = tuple(without(entry, factor) for entry in entries)
    found = simulate(own, Speed(tuple(factor)))
    ratios = [_median(parts) / float(np.median(found[case])) for case, parts in measured.items()]
    factor = factor * float(np.median(ratios))
    speed = Speed(tuple(factor.tolist()), sitting(measured), SOURCE)
    return Fit(speed, own, whole.size)


def without(entry: Entry, factor: Floats) -> Entry:
    """A cost's laws without the factor that they hold."""
    laws = {
        name: None if law is None else unmixed(law, factor)
        for name, law in (("cold", entry.cold), ("rested", entry.rested))
    }
    return entry.having(unmixed(entry.warm, factor), laws["cold"], laws["rested"])


def unmixed(law: Law, factor: Floats) -> Law:
    """The law that gives `law` when each value is multiplied by an independent factor, by its
    quantiles; the nearest where there is none, since the factor spreads more than the law."""
    values = np.asarray(law.quantiles_ns, dtype=np.float64)
    if values.size < 2 or values[0] == values[-1] or float(np.ptp(factor)) == 0.0:
        return law.scaled(1.0 / _mean(factor))
    places = np.linspace(0.0, 1.0, values.size)
    middles = (np.arange(_GRID) + 0.5) / _GRID
    factors = np.interp(middles, np.linspace(0.0, 1.0, factor.size), factor)
    goal = np.maximum(values, 1.0)
    own = goal.copy()
    for _ in range(_UNMIXING):
        drawn = np.interp(middles, places, own)
        product = np.quantile(np.outer(drawn, factors), places)
        own = np.maximum(isotonic_regression(own * goal / product).x, 0.0)
    return Law(tuple(own.tolist())).scaled(law.mean_ns / (Law(tuple(own)).mean_ns * _mean(factor)))


_GRID = 100
_UNMIXING = 12


def sitting(measured: Parts) -> float:
    """The standard deviation of a part's median, relative to its case's, beyond what chance gives
    the medians of so many connections."""
    between, chance = [], []
    for parts in measured.values():
        if len(parts) < 2:
            continue
        logs = np.log([float(np.median(part)) for part in parts])
        between.append(float(np.var(logs, ddof=1)))
        for part in parts:
            low, middle, high = np.quantile(part, (0.25, 0.5, 0.75))
            # The standard error of a median, from the quartiles as for a normal law.
            chance.append(float((1.2533 * (high - low) / 1.349 / middle) ** 2 / part.size))
    if not between:
        return 0.0
    return float(np.sqrt(max(0.0, np.mean(between) - np.mean(chance))))


def _relative(values: Floats) -> Floats:
    return np.clip(values / float(np.median(values)), LEAST, MOST)


def _median(parts: Sequence[Floats]) -> float:
    return float(np.median(np.concatenate(list(parts))))


def _count(samples: int) -> int:
    """How many quantiles so many samples tell: the last but one has some of them beyond it."""
    return 101 if samples >= 1_000 else 41 if samples >= 300 else 21


def _law(factor: Floats) -> Floats:
    """Not falling, and with median 1."""
    rising = isotonic_regression(factor).x
    return np.asarray(np.clip(rising / np.median(rising), LEAST, MOST), dtype=np.float64)


def _mean(quantiles: Floats) -> float:
    if quantiles.size == 1:
        return float(quantiles[0])
    return float((quantiles.sum() - (quantiles[0] + quantiles[-1]) / 2) / (quantiles.size - 1))


def _last(quantiles: Floats, mean: float) -> float:
    """The last quantile such that the law has this mean: the maximum is an accident."""
    steps = quantiles.size - 1
    last = 2 * (steps * mean - float(quantiles[1:-1].sum())) - float(quantiles[0])
    return max(float(quantiles[-2]), last)
