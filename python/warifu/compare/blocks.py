# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Standard errors from the parts of a measurement, which lie minutes apart.

Between them a machine's speed drifts by 5 to 12 %, so that trials of one part are alike and n of
them say less than n independent ones would. The error of an estimate is therefore taken from how
its parts differ, with one degree of freedom fewer than there are parts (Cochran 1977, section 9A,
for means and shares; the delete-a-group jackknife of Kott 2001 for quantiles). With five parts or
more Student's t then covers as often as it says, where a bootstrap of five parts covers
less than 90 % (tests/unit/test_compare_power.py has both).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warifu.compare.power import Error
from warifu.results import Floats
from warifu.results.parts import LEAST_PARTS

#: Groups at random of trials that count as independent, and the least of a group.
_GROUPS, _LEAST_OF_GROUP = 40, 5

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """The block of each of n trials, from 0 on; every block has one."""

    of: Ints
    count: int
    #: Whether they are parts of a measurement; else trials count as independent.
    are_parts: bool

    @staticmethod
    def of_parts(parts: Ints | None, n: int) -> Blocks:
        """From the part of each of ``n`` trials; groups at random where parts are not known, or too
        few to tell how they differ."""
        if parts is not None and parts.size == n:
            names, blocks = np.unique(parts, return_inverse=True)
            if names.size >= LEAST_PARTS:
                return Blocks(blocks.astype(np.int64), int(names.size), are_parts=True)
        count = max(2, min(_GROUPS, n // _LEAST_OF_GROUP))
        # The seed is fixed: the same trials give the same groups.
        drawn = np.random.default_rng(0).permutation(n) % count
        return Blocks(drawn.astype(np.int64), min(count, max(1, n)), are_parts=False)

    def where(self, chosen: NDArray[np.bool_]) -> Blocks:
        """Those of some of the trials; a block without any still counts as one."""
        return Blocks(self.of[chosen], self.count, self.are_parts)

    def error_of_mean(self, values: Floats) -> Error:
        """That of the mean of ``values``, one a trial; of blocks of any sizes."""
        if values.size < 2 or self.count < 2:
            return Error(float("inf"))
        sums = np.bincount(self.of, weights=values - values.mean(), minlength=self.count)
        square = self.count / (self.count - 1.0) * float(sums @ sums)
        return Error(float(np.sqrt(square)) / values.size, self.count - 1.0)

    def jackknife(self, statistic: Callable[[NDArray[np.bool_]], float]) -> Error:
        """That of a ``statistic`` of the trials that are True, each block left out in turn."""
        if self.count < 2:
            return Error(float("inf"))
        without = np.array([statistic(self.of != block) for block in range(self.count)])
        if not np.isfinite(without).all():
            return Error(float("inf"))
        off = without - without.mean()
        square = (self.count - 1.0) / self.count * float(off @ off)
        return Error(float(np.sqrt(square)), self.count - 1.0)


def quantile(values: Floats, p: float) -> float:
    """The smallest of ``values`` (any order, infinite for failed) that a share ``p`` of them does
    not exceed, as `Distribution.quantile`."""
    if not values.size:
        return float("nan")
    place = max(0, int(np.ceil(p * values.size * (1.0 - 1e-12))) - 1)
    return float(np.partition(values, place)[place])
