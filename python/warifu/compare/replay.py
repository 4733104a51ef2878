# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measured connections beside themselves, simulated with the fates that their packets met.

Both halves of a pair lost the same packets, so that the lottery is not in their difference. Costs
of computing are still drawn at random in the replay: the P95 of a paired difference is not zero for
a perfect predictor, so that times are judged by the median and the mean of differences, and by P95
beside P95.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from warifu.compare import jumps
from warifu.compare.blocks import Blocks, quantile
from warifu.compare.gates import REPLAY_MEAN, REPLAY_P50, REPLAY_P95, REPLAY_SEQUENCES
from warifu.compare.power import Error, student, trials_that_decide
from warifu.compare.rows import Row, judged, share_error, tells, trials_that_tell
from warifu.compare.speed import AT_ITS_SPEED
from warifu.compare.stats import Interval, share_interval
from warifu.results import Distribution, Floats, duration
from warifu.results.replay import ReplayOfCase

#: Independent pairs from which a share of 4 % is told from one of 2 % in 95 % of runs: by the
#: interval of Clopper and Pearson.
_LEAST_SEQUENCES = 1_050
#: Paired shares at a jump, absolute.
_SHARE_AT_JUMP = 0.01


@dataclass(frozen=True)
class Replayed:
    """What the replay of a case says."""

    rows: list[Row]
    connections: int
    #: Of them, in how many one half sent a packet that the other did not.
    divergent: int


def replayed(
    metric: str, of: ReplayOfCase, computing_share: float, longer_ns: Floats | None = None
) -> Replayed:
    """The gates on a case's pairs, of which none is left out; a measured connection that failed has
    no time, and is of none. At the machine's speed each replayed one takes ``longer_ns`` longer."""
    measured = of.measured_ns
    if not measured.size:
        return Replayed([], 0, 0)
    # A replay that came to nothing is later than all; as a time, as late as the latest measured.
    ours = np.where(np.isfinite(of.replayed_ns), of.replayed_ns, measured.max())
    named = ""
    if longer_ns is not None:
        ours, named = ours + longer_ns, AT_ITS_SPEED
    blocks = Blocks.of_parts(of.part, measured.size)
    rows = [
        _median_row(metric, ours - measured, measured, blocks, computing_share),
        _mean_row(metric, ours, measured, blocks),
        _p95_row(metric, ours, measured, blocks),
    ]
    rows = [replace(row, statistic=row.statistic + named) for row in rows]
    rows.append(_sequence_row(metric, of.same_sequence & np.isfinite(of.replayed_ns), blocks))
    return Replayed(rows, int(measured.size), int(of.divergent.sum()))


def _median_row(
    metric: str, off: Floats, measured: Floats, blocks: Blocks, computing_share: float
) -> Row:
    """The median of the paired difference, judged as a share of the measured median."""
    middle, typical = quantile(off, 0.5), quantile(measured, 0.5)
    rank = blocks.error_of_mean((off <= middle).astype(np.float64))
    half = student(rank.freedom) * rank.of
    interval = Interval(*(quantile(off, min(1.0, max(0.0, 0.5 + one))) for one in (-half, half)))
    width = REPLAY_P50.width_ns(typical, computing_share)
    row = Row(metric, "replayed: p50 of differences", middle + typical, typical, middle, interval)
    row = replace(row, gate=REPLAY_P50.text(computing_share))
    pairs = Distribution.of(off)
    needs = jumps.reach(pairs, 0.5, rank.needs)
    enough = jumps.widest_rank_error(pairs, 0.5, width)
    needed = trials_that_decide(rank.needs, enough, off.size)
    return judged(row, width, needs, needed, may_fail=blocks.are_parts)


def _mean_row(metric: str, ours: Floats, measured: Floats, blocks: Blocks) -> Row:
    off = ours - measured
    error = blocks.error_of_mean(off)
    mean = float(off.mean())
    row = Row(
        metric,
        "replayed: mean",
        float(ours.mean()),
        float(measured.mean()),
        mean,
        error.interval(mean),
        gate=REPLAY_MEAN.text(),
    )
    width = REPLAY_MEAN.width_ns(row.measured)
    needed = trials_that_decide(error.needs, width, off.size)
    return judged(row, width, error.needs, needed, may_fail=blocks.are_parts)


def _p95_row(metric: str, ours: Floats, measured: Floats, blocks: Blocks) -> Row:
    """P95 beside P95; where that is at a jump, the share of later connections."""
    values = quantile(ours, 0.95), quantile(measured, 0.95)
    difference = values[0] - values[1]
    width = REPLAY_P95.width_ns(values[1])
    halves = Distribution.of(ours), Distribution.of(measured)
    # The ranks of both halves move together: what is left is how the shares differ.
    shares = [
        (one <= at).astype(np.float64) for one, at in zip((ours, measured), values, strict=True)
    ]
    rank = blocks.error_of_mean(shares[0] - shares[1])
    found = jumps.jump(*halves, 0.95, max(rank.needs, share_error(0.95, ours.size)), width)
    if found is not None:
        return _paired_share_row(metric, found, ours, measured, blocks)
    error = blocks.jackknife(
        lambda kept: quantile(ours[kept], 0.95) - quantile(measured[kept], 0.95)
    )
    row = Row(
        metric, "replayed: p95", *values, difference, error.interval(difference),
        gate=REPLAY_P95.text(),
    )  # fmt: skip
    needed = trials_that_decide(error.needs, width, ours.size)
    if not tells(0.95, ours.size):
        # So few are beyond it that the jackknife says nothing of its error.
        least = trials_that_tell(0.95)
        return judged(row, width, math.inf, max(needed or 0, least), may_fail=False)
    return judged(row, width, error.needs, needed, may_fail=blocks.are_parts)


def _paired_share_row(
    metric: str, until_ns: float, ours: Floats, measured: Floats, blocks: Blocks
) -> Row:
    off = (ours <= until_ns).astype(np.float64) - (measured <= until_ns)
    # Where not one pair differs, as if two of four more did (Agresti and Coull 1998).
    least = Error(share_error(0.0, off.size))
    error = max(blocks.error_of_mean(off), least, key=lambda one: one.of)
    shares = float((ours <= until_ns).mean()), float((measured <= until_ns).mean())
    difference = shares[0] - shares[1]
    row = Row(
        metric, "replayed: p95 share", *shares, difference, error.interval(difference),
        gate=f"{_SHARE_AT_JUMP * 100:g} points within {duration(until_ns)}", unit="1",
    )  # fmt: skip
    needed = trials_that_decide(error.needs, _SHARE_AT_JUMP, off.size)
    return judged(row, _SHARE_AT_JUMP, error.needs, needed)


def _sequence_row(metric: str, same: np.ndarray, blocks: Blocks) -> Row:
    """The share of connections with another sequence of retransmissions: none is expected."""
    n, others = same.size, float((~same).sum())
    share = others / n
    interval = share_interval(others, n)
    needs, needed = (math.inf if n < _LEAST_SEQUENCES else 0.0), _LEAST_SEQUENCES
    if blocks.are_parts:
        # Parts may differ: a part in which the machine was slow has more of them.
        error = blocks.error_of_mean((~same).astype(np.float64))
        wider = error.interval(share)
        interval = Interval(max(0.0, min(interval.low, wider.low)), max(interval.high, wider.high))
        needs = max(needs, error.needs)
        needed = max(needed, trials_that_decide(error.needs, REPLAY_SEQUENCES, n) or 0)
    row = Row(
        metric, "replayed: other retransmissions", share, 0.0, share, interval,
        gate=f"at most {REPLAY_SEQUENCES * 100:g} %", unit="1",
    )  # fmt: skip
    return judged(row, REPLAY_SEQUENCES, needs, needed)
