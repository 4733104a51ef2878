# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a connection costs that begins after a rest: fitted to loopback runs with long pauses.

The bench times each message in a connection before which other data went through all caches and the
processor slept (crates/lab/calibrate-bench/src/tls/rest.rs). In a real process the pages of two
programs and of the kernel are as cold, so one factor a role, found from whole connections that
begin more than half a second after one another, stands for what the bench does not have; another
for its system calls and wake-ups, which the bench cannot time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from warifu.calibrate.part import Target
from warifu.calibrate.profile import Entry

Floats = NDArray[np.float64]

START: Mapping[tuple[str, str], float] = {
    ("client", "computing"): 1.0,
    ("server", "computing"): 1.0,
    ("client", "system"): 1.5,
    ("server", "system"): 1.5,
}
"""By role: the bench's rested times as they are, and system calls half as long again as warm."""

WIDTH = 1.6
"""By which factor each may well be off."""


@dataclass(frozen=True)
class Rest:
    """The factor of each, in the order of START."""

    values: tuple[float, ...]

    @staticmethod
    def start() -> Rest:
        """Where the search begins."""
        return Rest(tuple(START.values()))

    def applied(self, entry: Entry) -> Entry:
        """A cost with what it is after a rest: computing by the bench's rested times, a system call
        by its warm ones. What the bench did not time after a rest stays without."""
        factors = dict(zip(START, self.values, strict=True))
        role, _, rest = entry.operation.partition(".")
        if rest.startswith("system."):
            return replace(entry, rested=entry.warm.scaled(factors[role, "system"]))
        if entry.rested is None:
            return entry
        return replace(entry, rested=entry.rested.scaled(factors[role, "computing"]))

    def named(self) -> dict[str, float]:
        """For the record."""
        names = (f"{role} {what} after a rest" for role, what in START)
        return {name: round(value, 3) for name, value in zip(names, self.values, strict=True)}


def fit(
    measured_ns: Mapping[Target, float],
    errors_ns: Mapping[Target, float],
    predict: Callable[[Rest], Mapping[Target, float]],
) -> Rest:
    """Finds the factors whose predicted medians are the measured ones.

    As `system.fit`: the squares of the differences in units of their errors, plus those of the
    logarithms of the factors' ratios to their starts in units of `WIDTH`'s logarithm.
    """
    targets = sorted(measured_ns)
    goal = np.array([measured_ns[target] for target in targets])
    errors = np.array([errors_ns[target] for target in targets])
    start = np.array(list(START.values()))

    def at(point: Floats) -> Rest:
        return Rest(tuple((start * np.exp(point - 1.0)).tolist()))

    def residuals(point: Floats) -> Floats:
        answer = predict(at(point))
        differences = (np.array([answer[target] for target in targets]) - goal) / errors
        return np.concatenate((differences, (point - 1.0) / np.log(WIDTH)))

    # Around 1, in steps of a tenth, for the reasons given in `system.fit`.
    found = least_squares(
        residuals, np.ones_like(start), diff_step=0.1, loss="soft_l1", f_scale=2.0,
        bounds=(-1.0, 3.0), max_nfev=25, xtol=1e-3, ftol=1e-3,
    )  # fmt: skip
    return at(found.x)


def all_rested(entries: Sequence[Entry], rest: Rest) -> list[Entry]:
    """`Rest.applied` to each."""
    return [rest.applied(entry) for entry in entries]
