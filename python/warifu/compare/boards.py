# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is not known of a board whose figures are assumed, in a case's time and in a difference.

The trials' own noise is none of this: more of them would not make it less.
"""

from __future__ import annotations

import numpy as np

from warifu.compare.stats import CONFIDENCE, Interval
from warifu.results import Floats

_TAIL = (1.0 - CONFIDENCE) / 2.0


def range_of(on_boards: Floats) -> Interval:
    """What a case takes on 95 % of the boards."""
    return _ends(on_boards, on_boards)


def deviation(ours: Floats | None, theirs: Floats | None) -> Interval | None:
    """How far the difference of two cases is from its middle on 95 % of the boards, each board
    against itself; None where neither case depends on the board.

    A case that does not, such as one of another device, takes the same on all of them.
    """
    known = ours if ours is not None else theirs
    if known is None:
        return None
    one, other = (np.zeros_like(known) if of is None else of for of in (ours, theirs))
    with np.errstate(invalid="ignore"):
        apart = one - other
    good = apart[np.isfinite(apart)]
    if 2 * good.size < apart.size:
        return Interval(-np.inf, np.inf)
    # Where both fail nothing is known of the difference.
    low, high = (np.nan_to_num(apart, nan=end, posinf=np.inf, neginf=-np.inf) for end in _OPEN)
    middle = float(np.median(good))
    ends = _ends(low, high)
    return Interval(min(0.0, ends.low - middle), max(0.0, ends.high - middle))


_OPEN = (-np.inf, np.inf)


def _ends(low: Floats, high: Floats) -> Interval:
    """Whole boards are left out at each end, so that it is wider rather than narrower."""
    out = int(_TAIL * low.size)
    return Interval(float(np.sort(low)[out]), float(np.sort(high)[low.size - 1 - out]))
