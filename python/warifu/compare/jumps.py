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

#: Of the measured connections so many of those that the rank's error spans may lie inside.
_INSIDE = 0.1


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
    """The middle of the widest gap that the rank of the ``p`` quantile may fall on either side of,
    ns; None where no gap is wider than ``width``, and where it is none of both halves."""
    if not math.isfinite(rank_error) or ours.values.size < 2:
        return None
    shares = np.cumsum(ours.weights)[:-1] / ours.n
    near = (shares >= p - rank_error) & (shares <= p + rank_error)
    gaps = np.where(near, np.diff(ours.values), 0.0)
    at = int(gaps.argmax())
    if gaps[at] <= width:
        return None
    low, high = float(ours.values[at]), float(ours.values[at + 1])
    quarter = (high - low) / 4.0
    inside = theirs.cdf(np.array([low + quarter, high - quarter]))
    if inside[1] - inside[0] > _INSIDE * rank_error:
        return None
    return round((low + high) / 2.0 / 1e6) * 1e6
