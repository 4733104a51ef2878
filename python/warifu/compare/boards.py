# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is not known of a board whose figures are assumed, in a case's time and in a difference.

The trials' own noise is none of this: more of them would not make it less.
"""

from __future__ import annotations

import math

import numpy as np

from warifu.compare.stats import CONFIDENCE, Interval
from warifu.results import Floats, OnBoards

_TAIL = (1.0 - CONFIDENCE) / 2.0
_OPEN = (-np.inf, np.inf)


def statistic_range(on_boards: OnBoards, statistic: str) -> Interval:
    """A statistic of a time on 95 % of the boards: the median on each, and what luck adds to that
    on the board in the middle, which is taken to be the same on every board."""
    middle = on_boards.middle[statistic]
    off = deviation(on_boards, None)
    if not math.isfinite(middle) or off is None:
        return Interval(math.inf, math.inf)
    return Interval(max(0.0, middle + off.low), middle + off.high)


def median_range(on_boards: OnBoards, median: float) -> Interval:
    """A case's median on 95 % of the boards; ``median``, of all boards together, is among them."""
    low, high = statistic_range(on_boards, "p50")
    return Interval(min(low, median), max(high, median))


def deviation(ours: OnBoards | None, theirs: OnBoards | None) -> Interval | None:
    """How far the difference of two cases on 95 % of the boards is from that on the board in the
    middle, each board against itself; None where neither case depends on the board.

    A case that does not, such as one of another device, takes the same on all of them. Where a
    case fails on the board in the middle the interval is open.
    """
    known = ours if ours is not None else theirs
    if known is None:
        return None
    one, other = (
        np.zeros_like(known.typical) if of is None else of.typical for of in (ours, theirs)
    )
    in_middle = [0.0 if of is None else of.middle["typical"] for of in (ours, theirs)]
    if not all(map(math.isfinite, in_middle)):
        return Interval(-np.inf, np.inf)
    with np.errstate(invalid="ignore"):
        apart = one - other - (in_middle[0] - in_middle[1])
    # Where both fail nothing is known of the difference.
    return _ends(*(np.nan_to_num(apart, nan=end, posinf=np.inf, neginf=-np.inf) for end in _OPEN))


def median_difference(
    ours: OnBoards | None, theirs: OnBoards | None, alone: tuple[float, float]
) -> Interval | None:
    """The difference of two medians on 95 % of the boards; ``alone`` are both cases' own medians,
    of which that of a case holds that does not depend on the board."""
    if (off := deviation(ours, theirs)) is None:
        return None
    one, other = (
        median if of is None else of.middle["p50"]
        for of, median in zip((ours, theirs), alone, strict=True)
    )
    middle = one - other
    if not math.isfinite(middle):
        return Interval(-np.inf, np.inf)
    return Interval(middle + off.low, middle + off.high)


def _ends(lows: Floats, highs: Floats) -> Interval:
    """Whole boards are left out at each end, so that it is wider rather than narrower."""
    out = int(_TAIL * lows.size)
    return Interval(float(np.sort(lows)[out]), float(np.sort(highs)[highs.size - 1 - out]))
