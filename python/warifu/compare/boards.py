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
    """A statistic of a time on 95 % of the boards: a typical connection's on each, and what luck
    adds to that on the board in the middle, which is taken to be the same on every board."""
    middle = on_boards.middle[statistic]
    luck = middle - on_boards.middle["typical"]
    if math.isinf(middle) or not math.isfinite(luck):
        return Interval(math.inf, math.inf)
    low, high = _ends(on_boards.typical, on_boards.typical)
    return Interval(max(0.0, low + luck), high + luck)


def deviation(ours: OnBoards | None, theirs: OnBoards | None) -> Interval | None:
    """How far the difference of two cases is from its middle on 95 % of the boards, each board
    against itself; None where neither case depends on the board.

    A case that does not, such as one of another device, takes the same on all of them.
    """
    known = ours if ours is not None else theirs
    if known is None:
        return None
    one, other = (
        np.zeros_like(known.typical) if of is None else of.typical for of in (ours, theirs)
    )
    with np.errstate(invalid="ignore"):
        apart = one - other
    good = apart[np.isfinite(apart)]
    if 2 * good.size < apart.size:
        return Interval(-np.inf, np.inf)
    # Where both fail nothing is known of the difference.
    low, high = _ends(
        *(np.nan_to_num(apart, nan=end, posinf=np.inf, neginf=-np.inf) for end in _OPEN)
    )
    middle = float(np.median(good))
    return Interval(min(0.0, low - middle), max(0.0, high - middle))


def _ends(lows: Floats, highs: Floats) -> Interval:
    """Whole boards are left out at each end, so that it is wider rather than narrower."""
    out = int(_TAIL * lows.size)
    return Interval(float(np.sort(lows)[out]), float(np.sort(highs)[highs.size - 1 - out]))
