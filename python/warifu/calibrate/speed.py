# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What all computing of a connection has in common: found from whole connections.

Costs that are drawn step by step nearly cancel over a connection, while a machine that is slow for
a moment is slow for all of it. So whole connections spread more than the sum of their steps, and
each step's own times, which were measured over many connections, hold the common slowness as well.
Both are taken apart here: a factor that the computing of each role in a connection shares, such
that the simulator's connections spread as those that were measured, and the steps' own laws without
it (`crates/core/model/src/profile/speed.rs` says what the simulator makes of them).

The connections are those of the calibration's own runs without network delay, each divided by the
median of the part that it was measured in: what a whole part is slower than another are factors of
their own, which a trial draws as well (`sittings.py`).

After a wait connections spread further than warm ones: what they have in common is then found once
more, from the runs over a delay (`waited`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression, least_squares
from scipy.stats import norm

from warifu.calibrate.profile import Entry, Law, Speed
from warifu.calibrate.sittings import Floats, Parts, sittings

ROUNDS = 3
"""How often the factor is found and taken out of the steps' laws, each by the other."""

LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""The quantiles of whole connections, relative to their median, that are to be met."""

QUANTILES = 101
"""Of the factor's law, so that its 99th percentile is one of them."""

START = (0.02, 0.3, 0.05, 0.01, 1.0)
LOWEST, HIGHEST = (1e-4, 0.0, 0.0, 0.0, 0.1), (0.5, 3.0, 0.6, 0.25, 10.0)
"""Spread, skewness, elongation, share of slow connections and how slow they are (`_factor`) where
the search begins, and within which."""
_SCALE = (0.02, 0.3, 0.05, 0.02, 1.0)
"""What is much for each of them, so that the search takes steps of like weight."""

MOST, LEAST = 20.0, 1 / 3
"""How much slower or quicker a connection may be than the median one. On a busy host a virtual
processor computes up to some twenty times slower for milliseconds (studies/accuracy/README.md, 30
November, 22:08); what is beyond is an accident, which a factor of all steps is no image of."""

SOURCE = "spread of whole loopback connections that are not judged, beyond that of their steps"

Simulate = Callable[[Sequence[Entry], Speed], Mapping[str, Floats]]
"""Whole connections of each case, ns, with these costs and this speed; many of each."""


@dataclass(frozen=True)
class Search:
    """What a search for a factor found."""

    point: tuple[float, ...]
    """The parameters of `_factor`."""
    evaluations: int
    ended: str
    """Why it ended."""

    def named(self) -> dict[str, object]:
        """For a record."""
        names = ("spread", "skewness", "elongation", "share of slow connections", "their excess")
        found = {name: round(value, 5) for name, value in zip(names, self.point, strict=True)}
        return {**found, "evaluations": self.evaluations, "ended": self.ended}

    @property
    def factor(self) -> Floats:
        """Its quantiles."""
        return _factor(np.array(self.point))


@dataclass(frozen=True)
class Spread:
    """How whole connections spread about the median of their part, at `LEVELS`."""

    measured: tuple[float, ...]
    drawn: tuple[float, ...]
    """The same of simulated connections, with what was found."""
    search: Search

    def named(self) -> dict[str, object]:
        """For a record: where they differ, the factor does not tell how connections spread."""
        shown = {"level": LEVELS, "measured": self.measured, "drawn": self.drawn}
        quantiles = {name: [round(value, 4) for value in values] for name, values in shown.items()}
        return {**quantiles, "search": self.search.named()}


@dataclass(frozen=True)
class Fit:
    """What was found."""

    speed: Speed
    entries: tuple[Entry, ...]
    """The costs without what connections have in common."""
    connections: int
    """From how many connections."""
    spread: Spread
    system: Mapping[str, float]
    """The share of system calls in a connection, by case."""


def fit(entries: Sequence[Entry], measured: Parts, calls: Parts, simulate: Simulate) -> Fit:
    """Takes apart what connections have in common and what their steps have each for itself.

    `measured` are whole connections, and `calls` times of theirs in which there is nothing but
    system calls. `entries` are costs whose laws hold both. Costs become those of the median
    connection, whose factor is 1: each one's mean, times that of the factor, stays what it was, and
    then all are scaled alike, so that the median connection takes what was measured.
    """
    whole = np.concatenate([_relative(part) for some in measured.values() for part in some])
    point: Floats = np.array(START)
    own = tuple(entries)
    for _ in range(ROUNDS):
        costs = own

        def draw(factor: Floats) -> Floats:
            speed = Speed(tuple(factor.tolist()))
            return _drawn(simulate(costs, speed), measured)  # noqa: B023 - called in this round

        search = _search(point, whole, draw)
        point, factor = np.array(search.point), search.factor
        # Each from what was measured, so that nothing is taken out twice.
        own = tuple(without(entry, factor) for entry in entries)
    own_speed = Speed(tuple(factor.tolist()))
    alone = simulate(own, own_speed)
    spread = _spread(whole, _drawn(alone, measured), search)
    system = _system(own, own_speed, alone, simulate)
    computing, of_calls = sittings(measured, calls, system)
    speed = replace(own_speed, sitting=computing, sitting_system=of_calls, source=SOURCE)
    found = simulate(own, speed)
    ratios = [_median(parts) / float(np.median(found[case])) for case, parts in measured.items()]
    middle = float(np.median(ratios))
    own = tuple(entry.scaled(middle) for entry in own)
    return Fit(speed, own, whole.size, spread, system)


def _system(
    entries: Sequence[Entry], speed: Speed, drawn: Mapping[str, Floats], simulate: Simulate
) -> dict[str, float]:
    """The share of system calls in the median connection of each case: by how much more it takes
    when they do."""
    # Near what calls differ by from part to part, and far above the noise of a simulated median.
    more = 0.25
    slower = [entry.scaled(1.0 + more) if entry.is_system else entry for entry in entries]
    found = {case: float(np.median(values)) for case, values in simulate(slower, speed).items()}
    shares = {case: (found[case] / float(np.median(of)) - 1.0) / more for case, of in drawn.items()}
    return {case: min(1.0, max(0.0, share)) for case, share in shares.items()}


def fit_waited(
    entries: Sequence[Entry], speed: Speed, measured: Parts, rtt_ns: int, simulate: Simulate
) -> tuple[Speed, Spread]:
    """The same speed with what connections have in common after a wait, from connections over a
    delay, and how these spread.

    Such a connection is a number of round trips and what is computed: it counts by how far it is
    from its part's median, relative to the computing of its case, which is the simulated median
    less whole round trips.
    """
    medians = {case: float(np.median(of)) for case, of in simulate(entries, speed).items()}
    computing = {case: medians[case] % rtt_ns for case in measured}

    def relative(case: str, values: Floats) -> Floats:
        off = (values - float(np.median(values))) / max(1.0, computing[case])
        return np.clip(1.0 + off, LEAST, MOST)

    def draw(factor: Floats) -> Floats:
        # What a part is slower than another is in no connection's distance from its part's median.
        law = replace(speed, waited=tuple(factor.tolist()), sitting=0.0, sitting_system=None)
        drawn = simulate(entries, law)
        return np.concatenate([relative(case, drawn[case]) for case in measured])

    some = [relative(case, part) for case, parts in measured.items() for part in parts]
    whole = np.concatenate(some)
    search = _search(np.array(START), whole, draw)
    factor = search.factor
    return replace(speed, waited=tuple(factor.tolist())), _spread(whole, draw(factor), search)


def _search(start: Floats, whole: Floats, draw: Callable[[Floats], Floats]) -> Search:
    """The parameters of the factor with which drawn connections spread as those that were
    measured."""
    levels = np.array(LEVELS)
    goal = np.quantile(whole, levels)
    errors = _errors(whole, levels)

    def residuals(point: Floats) -> Floats:
        drawn: Floats = np.quantile(draw(_factor(point)), levels)
        return np.asarray(np.log(np.divide(drawn, goal)) / errors, dtype=np.float64)

    # The same chance each time, so that what is drawn moves smoothly.
    found = least_squares(
        residuals, np.clip(start, np.array(LOWEST) + 1e-6, np.array(HIGHEST) - 1e-6),
        bounds=(LOWEST, HIGHEST), x_scale=_SCALE, diff_step=0.05,
        loss="soft_l1", max_nfev=12, xtol=1e-3, ftol=1e-3,
    )  # fmt: skip
    return Search(tuple(found.x.tolist()), int(found.nfev), str(found.message))


def _spread(whole: Floats, drawn: Floats, search: Search) -> Spread:
    measured, found = (np.quantile(values, LEVELS) for values in (whole, drawn))
    return Spread(tuple(measured.tolist()), tuple(found.tolist()), search)


def _factor(point: Floats) -> Floats:
    """The quantiles of a factor with median 1. The logarithm of most has Tukey's g-and-h law
    (Hoaglin 1985): spread, skewness and elongation tell a quiet machine's disturbances well. A
    share of all are slow, as while a host has others use the processor, by an excess that is half
    a normal law: no one law of three parameters has a narrow middle and a tail of some in a
    hundred."""
    spread, skewness, elongation, share, excess = point
    z = norm.ppf(_FINE)
    bent = z if skewness < 1e-6 else np.expm1(skewness * z) / skewness
    usual = np.exp(np.clip(spread * bent * np.exp(elongation * z * z / 2), -_FAR, _FAR))
    slow = 1.0 + excess * norm.ppf((1.0 + _FINE) / 2.0)
    values = np.concatenate([usual, slow])
    weights = np.concatenate([np.full(_FINE.size, 1.0 - share), np.full(_FINE.size, share)])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    places = np.linspace(0.0, 1.0, QUANTILES)
    # The ends stand for all that is beyond the last but one.
    places[0], places[-1] = 0.25 / (QUANTILES - 1), 1.0 - 0.25 / (QUANTILES - 1)
    law = np.interp(places * _FINE.size, below, values[order])
    law /= np.interp(_FINE.size / 2, below, values[order])
    return np.asarray(np.clip(law, LEAST, MOST), dtype=np.float64)


_FINE: Floats = (np.arange(2_000) + 0.5) / 2_000
"""Where either of the two laws is taken."""
_FAR = math.log(MOST)


def _errors(values: Floats, levels: Floats) -> Floats:
    """The standard errors of a sample's quantiles, as parts of them, and no less than what moves
    between two sittings."""
    width = 0.02
    low: Floats = np.quantile(values, np.clip(levels - width, 0.0, 1.0))
    high: Floats = np.quantile(values, np.clip(levels + width, 0.0, 1.0))
    slope = np.log(np.divide(high, low)) / (2 * width)
    return np.asarray(np.hypot(np.sqrt(levels * (1 - levels) / values.size) * slope, 1e-3))


def _drawn(found: Mapping[str, Floats], measured: Parts) -> Floats:
    return np.concatenate([_relative(found[case]) for case in measured])


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
    own = np.maximum(values, 1.0)
    # On the same grid, whose ends are not the law's: a factor of 1 changes nothing.
    goal = np.quantile(np.outer(np.interp(middles, places, own), np.ones(_GRID)), places)
    for _ in range(_UNMIXING):
        drawn = np.interp(middles, places, own)
        product = np.quantile(np.outer(drawn, factors), places)
        ratio = goal / product
        # The last is an accident, of which the grid knows nothing; see `Law.of`.
        ratio[-1] = 1.0
        own = np.maximum(isotonic_regression(own * ratio).x, 0.0)
    mean = law.mean_ns / _mean(factor)
    found = Law.of(own.tolist(), mean)
    return found.scaled(mean / found.mean_ns)


_GRID = 100
_UNMIXING = 12


def _relative(values: Floats) -> Floats:
    return np.clip(values / float(np.median(values)), LEAST, MOST)


def _median(parts: Sequence[Floats]) -> float:
    return float(np.median(np.concatenate(list(parts))))


def _mean(quantiles: Floats) -> float:
    if quantiles.size == 1:
        return float(quantiles[0])
    return float((quantiles.sum() - (quantiles[0] + quantiles[-1]) / 2) / (quantiles.size - 1))
