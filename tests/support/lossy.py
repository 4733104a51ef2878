# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Connections whose law is known: losses repaired by timers, a machine that drifts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from warifu.compare.blocks import Blocks
from warifu.compare.rows import Halves
from warifu.results import Distribution
from warifu.results.strata import NullModels, OfStratum, StrataOfCase, Stratum
from warifu.results.trials import Trials

_MS = 1e6
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """Mutual TLS over four round trips.

    A lost SYN or SYN-ACK costs 1 s, the second one 2 s more. A lost segment of the client is sent
    again by a probe after two RTT or after the least RTO of 200 ms and one RTT; what the server
    sends again the client does not know of. A connection draws a speed of its own, a part one of
    its own that all of its connections share.
    """

    loss: float = 0.0
    rtt_ms: float = 60.0
    computing_ms: float = 4.0
    #: Standard deviations of the logarithm of both speeds.
    connection: float = 0.15
    drift: float = 0.0
    #: Every time of the measurement is stretched by this.
    scale: float = 1.0

    def draw(self, n: int, rng: np.random.Generator, parts: int | None = None) -> Trials:
        """n connections, in so many parts of equal length."""
        part = None if parts is None else np.arange(n) * parts // n
        syn = np.minimum(rng.geometric(1.0 - 2.0 * self.loss, n) - 1, 5)
        again = rng.binomial(5, self.loss, n)
        unseen = rng.binomial(5, self.loss, n)
        speed = np.exp(self.connection * rng.standard_normal(n))
        if part is not None:
            speed *= np.exp(self.drift * rng.standard_normal(parts))[part]
        computing = self.computing_ms * speed * rng.gamma(60.0, 1.0 / 60.0, n)
        repair = np.where(rng.random(n) < 0.4, 2.0 * self.rtt_ms + 4.0, 200.0 + self.rtt_ms)
        late = (repair + rng.exponential(2.0, n)) * (again + unseen)
        times = 4.0 * self.rtt_ms + computing + 1_000.0 * np.where(syn > 1, 2 * syn - 1, syn) + late
        counted = np.minimum(np.stack([syn, again], axis=1), 2)
        return Trials(np.arange(n), times * self.scale * _MS, part, counted)

    def off_by(self, factor: float) -> Law:
        """The same with every time so many times as long."""
        return replace(self, scale=self.scale * factor)


def halves(ours: Distribution, measured: Trials) -> Halves:
    """As comparing has them."""
    blocks = Blocks.of_parts(measured.part, measured.size)
    theirs = Distribution.of(measured.values)
    return Halves(ours, theirs, measured.values, blocks, np.inf)


def strata_of(trials: Trials) -> StrataOfCase:
    """As a prediction tells them."""
    found: dict[Stratum, OfStratum] = {}
    assert trials.strata is not None
    for syn in range(3):
        for again in range(3):
            values = trials.values[(trials.strata == (syn, again)).all(axis=1)]
            if values.size:
                found[syn, again] = OfStratum(values.size, values.mean(), values.var())
    models = NullModels(4.0, 60 * _MS, 4 * _MS)
    return StrataOfCase("https.establishment", models, float(trials.size), found)
