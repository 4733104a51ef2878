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


def statistic_range(on_boards: OnBoards, statistic: str, value: float) -> Interval:
    """A statistic of a time on 95 % of the boards, by its ``value`` on all boards together."""
    return _reach(on_boards, statistic, Interval(value, value), exact=True)


def statistic_reach(on_boards: OnBoards, statistic: str, interval: Interval) -> Interval:
    """The same with what trials leave open: by the ``interval`` of all boards together, and of how
    the board in the middle differs from them."""
    return _reach(on_boards, statistic, interval, exact=False)


def _reach(on_boards: OnBoards, statistic: str, interval: Interval, *, exact: bool) -> Interval:
    """Whatever the luck of a trial, a board is taken to be off the middle by the same."""
    less = on_boards.middle_less_all.get(statistic)
    off = deviation(on_boards, None)
    if not math.isfinite(interval.low) or less is None or off is None:
        return Interval(0.0, math.inf)
    low, high = (less.value, less.value) if exact else (less.low, less.high)
    return Interval(max(0.0, interval.low + low + off.low), interval.high + high + off.high)


def median_range(on_boards: OnBoards, median: float) -> Interval:
    """A case's median on 95 % of the boards; ``median``, of all boards together, is among them."""
    low, high = statistic_range(on_boards, "p50", median)
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
        np.zeros_like(known.off_middle) if of is None else of.off_middle for of in (ours, theirs)
    )
    if not (np.isfinite(one).any() and np.isfinite(other).any()):
        return Interval(-np.inf, np.inf)
    with np.errstate(invalid="ignore"):
        apart = one - other
    # Where both fail nothing is known of the difference.
    return _ends(*(np.nan_to_num(apart, nan=end, posinf=np.inf, neginf=-np.inf) for end in _OPEN))


def median_difference(
    ours: OnBoards | None, theirs: OnBoards | None, medians: tuple[float, float]
) -> Interval | None:
    """The difference of two cases' ``medians``, of all boards together, on 95 % of the boards."""
    if (off := deviation(ours, theirs)) is None:
        return None
    one, other = (
        middle_median(of, median) for of, median in zip((ours, theirs), medians, strict=True)
    )
    middle = one - other
    if not math.isfinite(middle):
        return Interval(-np.inf, np.inf)
    return Interval(middle + off.low, middle + off.high)


def middle_median(on_boards: OnBoards | None, median: float) -> float:
    """A case's median on the board in the middle, by its ``median`` of all boards together;
    infinite where failures reach it."""
    if on_boards is None:
        return median
    less = on_boards.middle_less_all.get("p50")
    return math.inf if less is None else median + less.value


def median_open(on_boards: OnBoards | None) -> float:
    """What the number of trials leaves open of `middle_median` beside the median, ns."""
    less = None if on_boards is None else on_boards.middle_less_all.get("p50")
    return 0.0 if less is None else max(less.high - less.value, less.value - less.low)


def _ends(lows: Floats, highs: Floats) -> Interval:
    """Whole boards are left out at each end, so that it is wider rather than narrower."""
    out = int(_TAIL * lows.size)
    return Interval(float(np.sort(lows)[out]), float(np.sort(highs)[highs.size - 1 - out]))
