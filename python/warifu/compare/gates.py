# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How near a prediction must come, and the verdict from the interval of the difference.

Whether the trials can decide a gate at all is `power`'s; what is judged besides the whole time is
in `strata` and `replay`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from warifu.compare.stats import Interval
from warifu.results.parts import LEAST_PARTS, OTHERS_MAX, SERVER_BUSY_ALLOWED

_MS = 1e6


class Verdict(StrEnum):
    """What an interval says about a bound; the order is from the worst to the best.

    Undecided is what could have been decided and lies near the gate; a gate that its trials cannot
    decide has no verdict.
    """

    FAIL = "fail"
    UNDECIDED = "undecided"
    PASS = "pass"


@dataclass(frozen=True)
class Gate:
    """A statistic of the whole time must be within ``relative`` of the measured value and
    ``absolute_ns`` more.

    Where computing is most of the time, that may be no more than ``of_computing`` of it: else the
    allowance in ms would let pass what misses half of the computing. Where round trips are, it may
    be no more than ``beside_delay`` of it and ``absolute_ns`` more: else round trips alone pass.
    """

    statistic: str
    relative: float
    absolute_ns: float = 0.0
    of_computing: float | None = None
    beside_delay: float | None = None

    def width_ns(self, measured: float, computing_share: float = 0.0) -> float:
        """The largest difference that is allowed, given the measured value in ns, of which a share
        is computing."""
        width = self.relative * abs(measured) + self.absolute_ns
        computing = computing_share * abs(measured)
        if computing_share > MOST_OF_THE_TIME:
            return width if self.of_computing is None else min(width, self.of_computing * computing)
        if self.beside_delay is None or computing_share <= 0.0:
            return width
        return min(width, self.beside_delay * computing + self.absolute_ns)

    def text(self, computing_share: float = 0.0) -> str:
        """For people: `0.5 % + 0.1 ms`."""
        share = f"{self.relative * 100:g} %"
        if self.absolute_ns:
            share += f" + {self.absolute_ns / _MS:g} ms"
        if computing_share > MOST_OF_THE_TIME and self.of_computing is not None:
            return f"{share}, at most {self.of_computing * 100:g} % of computing"
        if 0.0 < computing_share <= MOST_OF_THE_TIME and self.beside_delay is not None:
            more = f" + {self.absolute_ns / _MS:g} ms" if self.absolute_ns else ""
            return f"{share}, at most {self.beside_delay * 100:g} % of computing{more}"
        return share


#: Computing is most of the time above this share of it.
MOST_OF_THE_TIME = 0.5

#: What is allowed beside a share, and of computing where that is most of the time, or is not.
ABSOLUTE_NS, OF_COMPUTING, BESIDE_DELAY = 0.1 * _MS, 0.05, 0.15
#: The gates by the largest mean loss for which they hold.
LOSS_OF_2, LOSS_OF_5 = 0.02, 0.05
LOSS_FREE = (
    Gate("p50", 0.005, ABSOLUTE_NS, OF_COMPUTING, BESIDE_DELAY),
    Gate("mean", 0.01, ABSOLUTE_NS, OF_COMPUTING, BESIDE_DELAY),
)
LOSS_2 = (
    Gate("p50", 0.01, ABSOLUTE_NS, OF_COMPUTING),
    Gate("mean", 0.02),
    Gate("p95", 0.03),
    Gate("p99", 0.05),
)
LOSS_5 = (
    Gate("p50", 0.01, ABSOLUTE_NS, OF_COMPUTING),
    Gate("mean", 0.03),
    Gate("p95", 0.05),
    Gate("p99", 0.08),
)

#: How many times as long or as short as predicted what calibrated cells compute may take. Chosen:
#: twice the quarter by which virtual machines differ from one hour to the next (studies/accuracy).
MOST_APART = 1.5

#: Without loss: how far P95 and P99 may be off relative to their distance from the median.
SPREADS = {"p95": 0.15, "p99": 0.30}
#: Where a quantile is at a jump: the share of connections later than a time within it, absolute. A
#: promise of 95 % is then one of 94 to 96 %, one of 99 % of 98.5 to 99.5 %.
SHARES_AT_JUMP = {"p50": 0.02, "p95": 0.01, "p99": 0.005}
#: The share of connections that get their response, where any failed: absolute, or of those that
#: are predicted to fail, if that is more.
RESPONSES, RESPONSES_OF_FAILED = 0.01, 0.20
#: A stratum's share: of itself or of its complement, the smaller, and at most so much absolute. It
#: is what 10,000 connections decide for shares of 4 % and more; a packet more or less of fifteen
#: changes a share by 7 %, so that finer mistakes of recovery are for the replay to find.
STRATUM_SHARE, STRATUM_SHARE_MOST = 0.20, 0.02
#: Of the rare ones together at least so much absolute, since they may be predicted never to occur.
STRATUM_SHARE_LEAST = 0.002
#: Replayed connections: the median and the mean of the paired difference, P95 beside P95, and the
#: share of connections with another sequence of retransmissions.
REPLAY_P50 = Gate("p50", 0.005, ABSOLUTE_NS, OF_COMPUTING)
REPLAY_MEAN, REPLAY_P95 = Gate("mean", 0.01), Gate("p95", 0.02)
REPLAY_SEQUENCES = 0.02


def _percent(share: float) -> str:
    return f"{share * 100:g} %"


def _points(share: float) -> str:
    return f"{share * 100:g}"


def _of(gates: tuple[Gate, ...]) -> str:
    """The gates of one loss: `P50 1 % + 0.1 ms, mean 2 %`."""
    named = {gate: gate.statistic.replace("p", "P") for gate in gates}
    return ", ".join(f"{name} {gate.text()}" for gate, name in named.items())


#: For people, and for the report.
RULE = (
    f"Gates without loss: {_of(LOSS_FREE)}, the distance of P95 from the median within "
    f"{_percent(SPREADS['p95'])} and that of P99 within {_percent(SPREADS['p99'])} (or what two "
    "sittings of the cell differ by, if that is more), bytes exact. Mean loss up to "
    f"{_percent(LOSS_OF_2)}: {_of(LOSS_2)}; up to {_percent(LOSS_OF_5)}: {_of(LOSS_5)}; above that "
    "no gate was agreed. Where computing is most of the time, P50 and, without loss, the mean must "
    f"be within {_percent(OF_COMPUTING)} of computing as well; where round trips are, both without "
    f"loss within {_percent(BESIDE_DELAY)} of computing + {ABSOLUTE_NS / _MS:g} ms, which round "
    "trips alone do not meet. Strata (connections by SYN timeouts and by segments that the client "
    f"sent again: 0, 1, 2 or more of each): their shares within {_percent(STRATUM_SHARE)} of the "
    f"share or of its complement, the smaller, and within {_points(STRATUM_SHARE_MOST)} percentage "
    f"points, the rare ones together within {_points(STRATUM_SHARE_LEAST)} at least; the mean of "
    "each within the gate of the mean. A quantile at a jump of the distribution is judged by the "
    "share of connections later than a time inside the jump: within "
    f"{_points(SHARES_AT_JUMP['p50'])} (P50), {_points(SHARES_AT_JUMP['p95'])} (P95) and "
    f"{_points(SHARES_AT_JUMP['p99'])} (P99) percentage points. Replayed connections: median of "
    f"the paired difference within {REPLAY_P50.text()}, its mean within {REPLAY_MEAN.text()}, P95 "
    f"within {REPLAY_P95.text()}, another sequence of retransmissions in at most "
    f"{_percent(REPLAY_SEQUENCES)}. A gate is judged only if its trials can decide it, which is "
    "known before the difference is looked at: a perfect predictor passes in 95 % of runs, one "
    "that is off by twice the gate fails in 95 %. Else it is not judged, and the table has the "
    "trials that would, in parts as large as those measured. The 95 % interval of predicted minus "
    "measured then passes inside the gate and fails wholly outside; undecided is a difference near "
    "the gate. What fewer trials show to "
    "be wholly outside fails as well: shares of connections and the means of strata always, all "
    "else where parts give the errors. Errors come from how the parts of a measurement differ, "
    f"where there are {LEAST_PARTS} or more. Where cells that calibrated the prediction were "
    "measured between the judged ones, P50, the mean and replayed times of cells without loss are "
    "judged at the machine's speed: what these cells' computing took in that part, of what was "
    "predicted, times the judged cell's predicted computing. That a calibration was too quick or "
    "too slow in all cells alike is then no failure: it is not told from a machine that has "
    "changed. Where that computing took more than "
    f"{MOST_APART:g} times as long or as short, or did in more than a third of all rounds, "
    "nothing is judged: that is not the machine that was calibrated. There is no such speed of "
    "cells with a key store other than software, a rate or jitter, whose time is not all "
    "computing. A case that calibrated the prediction "
    f"is not judged, nor is one beside which other work took more than {_percent(OTHERS_MAX)} of "
    "the processors in any part, whose server was busy for more than "
    f"{_percent(SERVER_BUSY_ALLOWED)} of the time, so that connections waited for each other, or "
    "which the exact tier predicted. A quantile that failed connections reach in both halves has "
    "no value, and is not judged. Null models stand beside, without a verdict: one of them has the "
    "prediction's own computing, and may come as near in a median without loss."
)


def gates_for(loss: float) -> tuple[Gate, ...]:
    """The gates of a case with this mean loss (0 to 1); none above 5 %."""
    if loss <= 0.0:
        return LOSS_FREE
    if loss <= LOSS_OF_2:
        return LOSS_2
    return LOSS_5 if loss <= LOSS_OF_5 else ()


def judge(interval: Interval, width: float) -> Verdict:
    """The verdict of a gate from the interval of the difference and the allowed difference."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return Verdict.UNDECIDED
    if -width <= interval.low and interval.high <= width:
        return Verdict.PASS
    if interval.low > width or interval.high < -width:
        return Verdict.FAIL
    return Verdict.UNDECIDED


def worst(verdicts: list[Verdict]) -> Verdict | None:
    """The worst of several; None of none."""
    order = list(Verdict)
    return min(verdicts, key=order.index, default=None)
