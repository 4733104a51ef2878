# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How near a prediction must come, and the verdict from the interval of the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from warifu.compare.stats import Interval

_MS = 1e6


class Verdict(StrEnum):
    """What an interval says about a bound; the order is from the worst to the best."""

    FAIL = "fail"
    UNDECIDED = "undecided"
    PASS = "pass"


@dataclass(frozen=True)
class Gate:
    """A statistic of the establishment time must be within ``relative`` of the measured value
    or ``absolute_ns``, whichever is larger."""

    statistic: str
    relative: float
    absolute_ns: float = 0.0

    def width_ns(self, measured: float) -> float:
        """The largest difference that is allowed, given the measured value in ns."""
        return max(self.relative * abs(measured), self.absolute_ns)

    def is_too_wide(self, measured: float) -> bool:
        """Whether the absolute allowance is more than half of the measured value in ns.

        Then a prediction that misses the value by half would pass: the gate says nothing, whatever
        the difference is.
        """
        return self.absolute_ns > abs(measured) / 2.0

    def text(self) -> str:
        """For people: `1 % or 0.3 ms`."""
        share = f"{self.relative * 100:g} %"
        return f"{share} or {self.absolute_ns / _MS:g} ms" if self.absolute_ns else share


#: The gates by the largest mean loss for which they hold.
LOSS_FREE = (Gate("p50", 0.01, 0.3 * _MS), Gate("mean", 0.02, 0.5 * _MS))
LOSS_2 = (Gate("mean", 0.02), Gate("p95", 0.03), Gate("p99", 0.05))
LOSS_5 = (Gate("mean", 0.03), Gate("p95", 0.05), Gate("p99", 0.08))

#: Why a gate that is too wide gives no verdict.
TOO_WIDE = "the gate is wider than half the figure"

#: For people, and for the report.
RULE = (
    "Loss-free: P50 within 1 % or 0.3 ms, mean within 2 % or 0.5 ms (the larger bound of each), "
    "bytes exact. Mean loss up to 2 %: mean 2 %, P95 3 %, P99 5 %. Up to 5 %: mean 3 %, P95 5 %, "
    "P99 8 %. Above 5 % no gate was agreed: the figures are shown and not judged. A gate is "
    "judged by the 95 % interval of predicted minus measured: inside passes, wholly outside "
    "fails, anything else is undecided and needs more trials. A quantile that failed connections "
    "reach in both halves has no value, and is not judged. Where a bound in ms is more than half "
    "of the measured figure, the gate says nothing: no statement, and equal bytes alone are no "
    "pass."
)


def gates_for(loss: float) -> tuple[Gate, ...]:
    """The gates of a case with this mean loss (0 to 1); none above 5 %."""
    if loss <= 0.0:
        return LOSS_FREE
    if loss <= 0.02:
        return LOSS_2
    return LOSS_5 if loss <= 0.05 else ()


def judge(interval: Interval, width: float) -> Verdict:
    """The verdict of a gate from the interval of the difference and the allowed difference."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Verdict.UNDECIDED
    if -width <= interval.low and interval.high <= width:
        return Verdict.PASS
    if interval.low > width or interval.high < -width:
        return Verdict.FAIL
    return Verdict.UNDECIDED


def trials_needed(interval: Interval, difference: float, width: float, trials: int) -> int | None:
    """About how many measured trials would decide, if the difference stays what it is.

    An interval shrinks with the root of the trials (of both halves alike). None where no
    number would: the difference is on the gate's very edge, or has no interval yet.
    """
    room = abs(width - abs(difference))
    half = max(interval.high - difference, difference - interval.low)
    if not math.isfinite(half) or room <= 0.0:
        return None
    needed = trials * (half / room) ** 2
    return math.ceil(needed) if needed < 1e8 else None


def worst(verdicts: list[Verdict]) -> Verdict | None:
    """The worst of several; None of none."""
    order = list(Verdict)
    return min(verdicts, key=order.index, default=None)
