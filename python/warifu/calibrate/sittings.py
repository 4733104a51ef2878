# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What whole parts of a measurement differ by: how much slower or quicker a machine is for minutes.

What computes and what the system's calls and wake-ups take differ from part to part, each for
itself: parts of judged runs that were slow in TCP handshakes were not slow in what came after
(studies/accuracy/README.md). Why was not examined. So each has a factor of its own, whose logarithm
is normal, with median 1 (`crates/core/model/src/profile/speed.rs`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]

Parts = Mapping[str, Sequence[Floats]]
"""Times, ns, by case and part."""

_MOST = 0.9
"""The largest standard deviation that is looked for: profiles take none of 1 or more."""


class Sittings(NamedTuple):
    """Standard deviations of the factors' logarithms."""

    computing: float
    system: float


@dataclass(frozen=True)
class _Between:
    """What the parts of a case differ by."""

    variance: float
    """Of the logarithms of their medians."""
    chance: float
    """What of it chance gives the medians of so many connections."""
    freedom: int
    system: float
    """The share of system calls in the time."""

    def expected(self, computing: float, system: float) -> float:
        own = ((1.0 - self.system) * computing) ** 2 + (self.system * system) ** 2
        return own + self.chance


def sittings(wholes: Parts, calls: Parts, shares: Mapping[str, float]) -> Sittings:
    """The likeliest factors of whole connections, in whose case system calls have a share of
    `shares`, and of times in which there is nothing but system calls.

    The variance of so few logarithms of medians has a gamma law about what is expected of it. 0
    where no case has two parts.
    """
    rows = [row for case, parts in wholes.items() for row in _between(parts, shares[case])]
    rows += [row for parts in calls.values() for row in _between(parts, 1.0)]
    if not rows:
        return Sittings(0.0, 0.0)

    def unlikely(point: Floats) -> float:
        expected = [(row, row.expected(*point)) for row in rows]
        return sum(
            row.freedom / 2 * (math.log(mean) + row.variance / mean) for row, mean in expected
        )

    start = math.sqrt(max(1e-6, float(np.mean([row.variance - row.chance for row in rows]))))
    bound = (0.0, _MOST)
    found = minimize(unlikely, (start, start), method="Powell", bounds=(bound, bound))
    computing, system = found.x
    return Sittings(float(computing), float(system))


def _between(parts: Sequence[Floats], system: float) -> list[_Between]:
    """None of a single part."""
    if len(parts) < 2:
        return []
    medians: Floats = np.array([float(np.median(part)) for part in parts])
    chance = []
    for part in parts:
        low, middle, high = np.quantile(part, (0.25, 0.5, 0.75))
        # The standard error of a median, from the quartiles as for a normal law. A clock's step is
        # the least that two medians are known to differ by.
        error = max(1.2533 * (high - low) / 1.349, 1.0)
        chance.append(float((error / middle) ** 2 / part.size))
    variance = float(np.var(np.log(medians), ddof=1))
    return [_Between(variance, float(np.mean(chance)), len(parts) - 1, system)]
