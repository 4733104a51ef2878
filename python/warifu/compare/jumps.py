# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How far a quantile moves with its rank, and where a distribution jumps.

Between two retransmission timers no connection ends. A quantile whose rank may fall on either side
of such a gap moves by hundreds of milliseconds with a hundredth of a percent of probability; the
share of connections on either side does not.
"""

from __future__ import annotations

import math

import numpy as np

from warifu.results import Distribution

#: Of the connections that the rank's error spans so many may lie in the middle of a gap.
_INSIDE = 0.1
#: The share of the way between the quantiles of the ranks around it that is a gap's, at least, and
#: the connections that end beyond it among those ranks.
_OF_THE_WAY, _LEAST_BEYOND = 1.0 / 3.0, 5


def reach(distribution: Distribution, p: float, rank_error: float) -> float:
    """How far the ``p`` quantile moves if its rank is off by ``rank_error`` (a share); infinite
    where that is beyond the distribution."""
    if not math.isfinite(rank_error):
        return math.inf
    low, high = p - rank_error, p + rank_error
    count = distribution.n
    if low * count < 1.0 or high * count > distribution.completed:
        return math.inf
    ends = distribution.at_rank(np.array([low, p, high]) * count)
    return float(max(ends[1] - ends[0], ends[2] - ends[1]))


def widest_rank_error(distribution: Distribution, p: float, width: float) -> float:
    """The largest error of the rank (a share) with which the quantile moves by ``width`` at most;
    0 where none does."""
    low, high = 0.0, min(p, 1.0 - p)
    if reach(distribution, p, high) <= width:
        return high
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if reach(distribution, p, middle) <= width else (low, middle)
    return low if low > 1e-6 else 0.0


def jump(
    ours: Distribution, theirs: Distribution, p: float, rank_error: float, width: float
) -> float | None:
    """A time, ns, in the gap that the rank of the ``p`` quantile may fall on either side of; None
    where it is at none.

    A gap is wider than ``width``, and no connection of either half ends in its middle. It is a
    third of the way between the quantiles of the ranks around it or more, and connections end
    beyond it that are among those: the last ones of a tail are far apart, and at no timer's edge.
    """
    if not math.isfinite(rank_error) or ours.values.size < 2:
        return None
    shares = np.cumsum(ours.weights)[:-1] / ours.n
    near = (shares >= p - rank_error) & (shares <= p + rank_error)
    gaps = np.where(near, np.diff(ours.values), 0.0)
    at = int(gaps.argmax())
    low, high = float(ours.values[at]), float(ours.values[at + 1])
    if high - low <= width:
        return None
    if not all(_has_gap(half, low, high, rank_error) for half in (ours, theirs)):
        return None
    return _within(low, high)


def _has_gap(half: Distribution, low: float, high: float, rank_error: float) -> bool:
    """Whether no connection of a half ends in the middle of a gap that is none between the last of
    a tail: it is enough of the way between the quantiles of the ranks around it, and enough
    connections end beyond it."""
    quarter = (high - low) / 4.0
    below, above = half.cdf(np.array([low + quarter, high - quarter]))
    if above - below > _INSIDE * rank_error:
        return False
    last = min(above + rank_error, half.completed / half.n)
    way = half.quantile(last) - half.quantile(max(0.0, below - rank_error))
    draws = math.inf if half.exact else half.independent
    return high - low >= _OF_THE_WAY * way and (last - above) * draws >= _LEAST_BEYOND


def _within(low: float, high: float) -> float:
    """The middle, with as few digits as keep it in the middle half."""
    middle, quarter = (low + high) / 2.0, (high - low) / 4.0
    for digits in range(16):
        rounded = float(f"{middle:.{digits}e}")
        if abs(rounded - middle) <= quarter:
            return rounded
    return middle
