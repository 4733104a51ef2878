# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a prediction without a simulator would say, and by how much ours is nearer.

Two such models: k round trips, and k round trips with the mean computing of both ends. They stand
beside the gates without a verdict: the second one has our own computing, so that without loss its
median may be as near as ours. What it cannot say is what losses, queues and spreads do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warifu.compare.rows import Row
from warifu.compare.speed import AT_ITS_SPEED
from warifu.results.strata import NullModels


@dataclass(frozen=True)
class Beside:
    """A null model beside our prediction of one statistic; errors are predicted - measured, ns."""

    model: str
    statistic: str
    predicted_ns: float
    error_ns: float
    our_error_ns: float
    #: The end of our error's interval that is further from zero.
    our_worst_ns: float

    @property
    def times_nearer(self) -> float:
        """How many times as far off the model is; infinite where we are not off."""
        ours = abs(self.our_error_ns)
        return abs(self.error_ns) / ours if ours else math.inf

    @property
    def verdict(self) -> str:
        """For people: `8.2 times nearer`, `no better than it`, or that trials do not tell."""
        if abs(self.our_error_ns) >= abs(self.error_ns):
            return "no better than it"
        if self.our_worst_ns >= abs(self.error_ns):
            return "nearer, but within the noise"
        times = self.times_nearer
        return f"{times:.2g} times nearer" if times < 100 else "over 100 times nearer"


#: The statistics of which null models say something.
STATISTICS = ("p50", "mean")


def beside(models: NullModels, rows: list[Row], longer_ns: float = 0.0) -> list[Beside]:
    """Both models beside each statistic of the whole time. Where ours is judged at the machine's
    speed, so is theirs: computing takes ``longer_ns`` longer."""
    named = {
        "k x RTT": models.of_round_trips_ns,
        "k x RTT + computing": models.with_computing_ns + longer_ns,
    }
    at_its_speed = any(row.statistic.endswith(AT_ITS_SPEED) for row in rows)
    wanted = {one + AT_ITS_SPEED if at_its_speed else one: one for one in STATISTICS}
    return [
        Beside(
            model,
            wanted[row.statistic],
            ns,
            ns - row.measured,
            row.difference,
            max(abs(row.interval.low), abs(row.interval.high)),
        )
        for row in rows
        if row.statistic in wanted and math.isfinite(row.measured)
        for model, ns in named.items()
    ]
