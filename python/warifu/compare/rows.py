# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One figure in both halves, and how its gate judges it.

First it is asked what the trials can decide, then what the difference is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from warifu.compare import jumps, stats
from warifu.compare.blocks import Blocks, quantile
from warifu.compare.gates import (
    RESPONSES,
    RESPONSES_OF_FAILED,
    SHARES_AT_JUMP,
    SPREADS,
    Gate,
    Verdict,
    judge,
)
from warifu.compare.power import Error, together, trials_that_decide
from warifu.compare.stats import Interval
from warifu.results import Distribution, Floats, duration

#: Why a gate is not judged.
TOO_FEW = "too few trials to decide it"
TOO_FEW_PREDICTED = "too few simulated trials to decide it"
#: Trials beyond a quantile from which leaving out groups of them says how sure it is.
LEAST_BEYOND = 10


@dataclass(frozen=True)
class Row:
    """One figure in both halves; ``difference`` is predicted - measured."""

    metric: str
    statistic: str
    predicted: float
    measured: float
    difference: float
    interval: Interval
    #: The gate in words, None where there is none; its width and the verdict, None where nothing is
    #: judged.
    gate: str | None = None
    width: float | None = None
    verdict: Verdict | None = None
    #: Why a figure with a gate is not judged.
    no_statement: str = ""
    #: About how many measured trials would decide a gate that is not judged for lack of them.
    trials_needed: int | None = None
    #: Whether the quantile lies on the edge of an atom, so that its difference may jump.
    on_edge: bool = False
    #: ns, or 1 for shares.
    unit: str = "ns"

    @property
    def relative(self) -> float:
        """The difference as a share of the measured value."""
        if not self.measured or not math.isfinite(self.measured):
            return math.nan
        return self.difference / self.measured


@dataclass(frozen=True)
class Halves:
    """One metric of a case in both halves."""

    ours: Distribution
    theirs: Distribution
    #: The measured values, infinite for failed, with the block of each.
    values: Floats
    blocks: Blocks
    #: Where means are cut because of failed connections, ns; infinite without any.
    limit: float
    #: What was measured, of which gates are a share, where ``theirs`` is moved to another speed.
    unmoved: Distribution | None = None

    @property
    def judged_by(self) -> Distribution:
        """What the widths of gates are a share of."""
        return self.theirs if self.unmoved is None else self.unmoved

    @property
    def n(self) -> int:
        """Independent measured trials."""
        return self.theirs.independent


def judged(
    row: Row, width: float, needs: float, trials_needed: int | None, *, may_fail: bool = True
) -> Row:
    """The same with its verdict, or why it has none.

    ``needs`` is the least width that the trials can decide. Fewer trials can still show that the
    difference is wholly outside the gate, which a perfect predictor's is in less than 2.5 % of
    runs; not where ``may_fail`` is false, of intervals that are only rough or know of no parts.
    """
    row = replace(row, width=width)
    verdict = judge(row.interval, width)
    if needs <= width or (may_fail and verdict is Verdict.FAIL):
        return replace(row, verdict=verdict)
    reason = TOO_FEW if trials_needed is not None else TOO_FEW_PREDICTED
    return replace(row, no_statement=reason, trials_needed=trials_needed)


def mean_row(
    metric: str,
    halves: Halves,
    gate: Gate | None,
    computing_share: float,
    rng: np.random.Generator,
) -> Row:
    """The mean of times up to the limit."""
    ours, theirs, limit = halves.ours, halves.theirs, halves.limit
    values = ours.mean(limit), theirs.mean(limit)
    own = _predicted_error(ours, limit)
    blocks = halves.blocks
    measured = blocks.error_of_mean(np.minimum(halves.values, limit))
    if blocks.are_parts:
        interval = together(own, measured).interval(values[0] - values[1])
        interval = stats.with_left_out(interval, values[0], ours.mean_ends(limit))
    else:
        interval = stats.mean_difference(ours, theirs, rng, limit)
    row = Row(metric, "mean", *values, values[0] - values[1], interval)
    if gate is None:
        return row
    row = replace(row, gate=gate.text(computing_share))
    # As many trials of the prediction as were measured scatter at least so.
    scatter = _predicted_error(ours, limit, halves.n)
    if scatter.of > measured.of:
        measured = Error(scatter.of, max(scatter.freedom, measured.freedom))
    error = together(own, measured)
    width = gate.width_ns(halves.judged_by.mean(limit), computing_share)
    share = (own.of / error.of) ** 2 if error.of else 0.0
    needed = trials_that_decide(error.needs, width, halves.n, share)
    return judged(row, width, error.needs, needed, may_fail=blocks.are_parts)


def _predicted_error(ours: Distribution, limit: float, n: float | None = None) -> Error:
    """That of the mean of ``n`` draws of the prediction; of as many as it has. Freedom is what
    the kurtosis leaves of it: var(s^2) is (kurtosis - 1) / n of s^4 (Kenney and Keeping 1951)."""
    values, weights = ours.limited(limit)
    n = (math.inf if ours.exact else ours.independent) if n is None else n
    if not values.size or not n:
        return Error(math.inf)
    mean = np.average(values, weights=weights)
    square = (values - mean) ** 2
    variance = float(np.average(square, weights=weights))
    if variance <= 0.0:
        return Error(0.0)
    kurtosis = float(np.average(square**2, weights=weights)) / variance**2
    freedom = 2.0 * n / (kurtosis - 1.0) if kurtosis > 1.0 else math.inf
    return Error(math.sqrt(variance / n), max(1.0, freedom))


def quantile_rows(
    metric: str,
    statistic: str,
    p: float,
    halves: Halves,
    gate: Gate | None,
    computing_share: float,
    rng: np.random.Generator,
) -> list[Row]:
    """A quantile, and beside it the share of later connections where it is at a jump."""
    ours, theirs = halves.ours, halves.theirs
    values = ours.quantile(p), theirs.quantile(p)
    difference = values[0] - values[1]
    rank = _rank_error(halves, p)
    interval = stats.quantile_difference(ours, theirs, p, rng, rank)
    row = Row(metric, statistic, *values, difference, interval, on_edge=on_edge(theirs, p))
    if gate is None:
        return [row]
    row = replace(row, gate=gate.text(computing_share))
    if math.isinf(values[0]) and math.isinf(values[1]):
        return [replace(row, no_statement=stats.failures_reach(p) + " in both halves")]
    # Where failures reach the measured quantile it has no value to take a share of.
    typical = halves.judged_by.quantile(p)
    width = gate.width_ns(typical if math.isfinite(typical) else values[0], computing_share)
    own = Error(0.0 if ours.exact else math.sqrt(p * (1.0 - p) / max(1, ours.independent)))
    error = together(own, rank)
    found = jumps.jump(ours, theirs, p, error.needs, width)
    if found is not None:
        share = share_row(metric, f"{statistic} share", found, SHARES_AT_JUMP[statistic], halves)
        return [replace(row, gate=None), share]
    needs = max(jumps.reach(half, p, error.needs) for half in (ours, theirs))
    predicted_share = (own.of / error.of) ** 2 if error.of else 0.0
    enough = jumps.widest_rank_error(ours, p, width)
    needed = trials_that_decide(error.needs, enough, halves.n, predicted_share)
    if needed is not None:
        needed = max(needed, stats.least_trials(p))
    return [judged(row, width, needs, needed, may_fail=halves.blocks.are_parts)]


def _rank_error(halves: Halves, p: float) -> Error:
    """That of the share of measured trials below the quantile (Woodruff 1952): from the parts."""
    if halves.blocks.are_parts:
        below = halves.values <= halves.theirs.quantile(p)
        return halves.blocks.error_of_mean(below.astype(np.float64))
    return Error(math.sqrt(p * (1.0 - p) / max(1, halves.n)))


def responses_row(metric: str, halves: Halves) -> Row | None:
    """The share of connections that got their response; None where all did, in both halves."""
    if not halves.ours.failed and not halves.theirs.failed:
        return None
    failing = halves.ours.failed / halves.ours.n if halves.ours.n else 0.0
    bound = max(RESPONSES, RESPONSES_OF_FAILED * failing)
    return share_row(metric, "responses", math.inf, bound, halves)


def share_row(metric: str, statistic: str, until_ns: float, bound: float, halves: Halves) -> Row:
    """The share of connections that had their response by a time: independent draws, since the
    link's lottery says which of them are late. Losses in bursts, which several connections meet,
    make them less independent than that."""
    at = np.array([until_ns])
    ours, theirs = (float(half.cdf(at)[0]) for half in (halves.ours, halves.theirs))
    errors = [
        Error(0.0 if half.exact else share_error(ours, half.independent))
        for half in (halves.ours, halves.theirs)
    ]
    difference = ours - theirs
    actual = Error(
        math.hypot(errors[0].of, share_error(theirs, halves.theirs.independent)),
    )
    interval = actual.interval(difference)
    interval = stats.with_left_out(interval, ours, halves.ours.share_ends(ours))
    row = Row(metric, statistic, ours, theirs, difference, interval, unit="1")
    within = f" within {duration(until_ns)}" if math.isfinite(until_ns) else ""
    row = replace(row, gate=f"{bound * 100:g} points{within}")
    error = together(*errors)
    own = (errors[0].of / error.of) ** 2 if error.of else 0.0
    return judged(row, bound, error.needs, trials_that_decide(error.needs, bound, halves.n, own))


def share_error(share: float, n: float) -> float:
    """The standard error of a share of ``n`` independent draws; never nothing (Agresti and Coull
    1998: two successes and two failures are added)."""
    if n <= 0:
        return math.inf
    share = (share * n + 2.0) / (n + 4.0)
    return math.sqrt(share * (1.0 - share) / n)


def spread_row(
    metric: str,
    statistic: str,
    p: float,
    halves: Halves,
    sittings_ns: float,
    rng: np.random.Generator,
) -> Row:
    """The distance of a quantile from the median; ``sittings_ns`` is what it differs by between two
    sittings of the cell."""
    ours, values = halves.ours, halves.values
    spreads = ours.quantile(p) - ours.quantile(0.5), quantile(values, p) - quantile(values, 0.5)
    own = _spread_error(ours, p, ours.independent, rng)
    measured = halves.blocks.jackknife(
        lambda kept: quantile(values[kept], p) - quantile(values[kept], 0.5)
    )
    error = together(own, measured)
    difference = spreads[0] - spreads[1]
    bound = SPREADS[statistic]
    gate = f"{bound * 100:g} % of the distance"
    far, middle = ours.quantile_ends(p), ours.quantile_ends(0.5)
    ends = far[0] - middle[1], far[1] - middle[0]
    interval = stats.with_left_out(error.interval(difference), spreads[0], ends)
    row = Row(metric, f"{statistic} - p50", *spreads, difference, interval, gate=gate)
    if not all(map(math.isfinite, spreads)):
        return replace(row, no_statement=stats.failures_reach(p))
    width = bound * spreads[1]
    if sittings_ns > width:
        width, row = sittings_ns, replace(row, gate="what two sittings differ by")
    scatter = _spread_error(ours, p, halves.n, rng)
    at_least = max((measured, scatter), key=lambda one: one.of)
    null = together(own, Error(at_least.of, max(measured.freedom, 1.0)))
    share = (own.of / null.of) ** 2 if null.of else 0.0
    return judged(
        row,
        width,
        null.needs,
        trials_that_decide(null.needs, width, halves.n, share),
        may_fail=halves.blocks.are_parts and tells(p, halves.n),
    )


def tells(p: float, n: float) -> bool:
    """Whether a quantile of ``n`` trials has enough of them beyond it for its jackknife."""
    return (1.0 - p) * n >= LEAST_BEYOND


def trials_that_tell(p: float) -> int:
    """The fewest trials for which that holds."""
    return math.ceil(LEAST_BEYOND / (1.0 - p) - 1e-9)


def _spread_error(ours: Distribution, p: float, n: float, rng: np.random.Generator) -> Error:
    """That of the distance of ``n`` draws of the prediction, from the joint law of two ranks."""
    if ours.exact and n == ours.independent:
        return Error(0.0)
    if n < 2:
        return Error(math.inf)
    errors = [math.sqrt(q * (1.0 - q) / n) for q in (0.5, p)]
    normal = rng.standard_normal((2, 1_000))
    # Two ranks of a Brownian bridge.
    together_by = math.sqrt(0.5 * (1.0 - p) / (p * 0.5))
    lower = np.clip(0.5 + errors[0] * normal[0], 0.0, 1.0)
    mixed = together_by * normal[0] + math.sqrt(1.0 - together_by**2) * normal[1]
    upper = np.clip(p + errors[1] * mixed, 0.0, 1.0)
    distances = ours.at_rank(upper * ours.n) - ours.at_rank(lower * ours.n)
    if not np.isfinite(distances).all():
        return Error(math.inf)
    return Error(float(distances.std()))


def on_edge(distribution: Distribution, p: float) -> bool:
    """Whether a tenth of the value lies between the ends of the quantile's interval."""
    low, high = stats.quantile_interval(distribution, p)
    return high - low > 0.1 * distribution.quantile(p)
