# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A study's `[require]`: bounds on statistics, judged for every case by its interval."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warifu.compare import boards, stats
from warifu.compare.gates import Verdict
from warifu.compare.stats import Interval
from warifu.results import PREDICTED, Distribution, Results, metrics

#: Boards are told as a reason where they leave such a part open of what trials do.
_TELLS = 0.25
#: What responses have whose last byte comes later than their first, and is predicted
#: (crates/core/model, Pattern::has_response_done).
_LAST_BYTE, FIRST_RECORD_BYTES = "https.response_complete", 15_872
#: `LONGEST_BODY` of crates/core/model: up to it the last byte of a response is predicted.
LONGEST_BODY_BYTES = 131_072
_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Requirement:
    """``metric.statistic operator bound``; the bound is in the metric's unit (ns, B or 1).

    That of `connection.failed` or `scenario.failed` is a probability from 0 to 1.
    """

    metric: str
    statistic: str
    operator: str
    bound: float
    text: str

    def holds(self, value: float) -> bool:
        """Whether one value satisfies the bound."""
        match self.operator:
            case "<":
                return value < self.bound
            case "<=":
                return value <= self.bound
            case ">":
                return value > self.bound
            case ">=":
                return value >= self.bound
        raise ValueError(f"unknown operator {self.operator!r}: expected <, <=, > or >=")


@dataclass(frozen=True)
class Judged:
    """A requirement on one case of one half."""

    requirement: Requirement
    case_id: str
    label: str
    half: str
    value: float
    interval: Interval
    n: float
    verdict: Verdict
    trials_needed: int | None
    #: Why it is undecided, where more trials alone do not change that, or the value infinite.
    remark: str = ""
    #: The statistic on 95 % of the boards, ns, and the same with what trials leave open; None where
    #: every board is the same.
    boards: Interval | None = None
    reach: Interval | None = None
    #: The weakest evidence that the figure rests on.
    evidence: str = "assumed"
    #: The share of trials that failed and have no value in this figure; 0 where all count.
    left_out: float = 0.0

    @property
    def valueless(self) -> bool:
        """Whether the case has no value of the figure at all, so that no trials would decide."""
        return math.isnan(self.value) and self.verdict is Verdict.UNDECIDED

    @property
    def margin(self) -> float:
        """How far the value is inside its bound, as a share of it; negative beyond."""
        if math.isnan(self.value):
            return -math.inf
        room = (self.requirement.bound - self.value) / (abs(self.requirement.bound) or 1.0)
        return room if self.requirement.operator in {"<", "<="} else -room


def requirements(raw: Sequence[Sequence[object]]) -> list[Requirement]:
    """From (metric, statistic, operator, bound, text), as studies and manifests have them."""
    return [
        Requirement(str(metric), str(statistic), str(operator), float(str(bound)), str(text))
        for metric, statistic, operator, bound, text in raw
    ]


def judge_all(
    results: Results, wanted: Sequence[Requirement], among: Container[str] | None = None
) -> list[Judged]:
    """Every requirement on every case of a half that has its metric, or on those ``among`` these
    case ids.

    A measurement sees some metrics only, and says nothing of the others; a prediction that does
    not have a metric leaves the requirement undecided.
    """
    judged = []
    for case_id in results.cases:
        if among is not None and case_id not in among:
            continue
        for requirement in wanted:
            if not results.has_metric(case_id, requirement.metric):
                continue
            distribution = results.distribution(case_id, requirement.metric)
            if distribution.values.size or distribution.failed:
                judged.append(_judge(results, case_id, requirement, distribution))
            elif results.half == PREDICTED:
                judged.append(_unknown(results, case_id, requirement))
    return judged


def _unknown(results: Results, case_id: str, requirement: Requirement) -> Judged:
    """The verdict where no connection, or no scenario, gave a value."""
    whose = "scenario" if metrics.is_of_scenario(requirement.metric) else "connection"
    remark = f"no {whose} gave a value of {requirement.metric}"
    body = results.cases[case_id].get("response_body")
    if requirement.metric == _LAST_BYTE and isinstance(body, int):
        if body < FIRST_RECORD_BYTES:
            whole = results.whole(case_id)
            remark = f"a response below 15.5 KiB ends with its first byte: require {whole} for it"
        elif body > LONGEST_BODY_BYTES:
            remark = "the end of responses of more than 128 KiB is not predicted"
    return Judged(
        requirement,
        case_id,
        results.label(case_id),
        results.half,
        math.nan,
        Interval(math.nan, math.nan),
        results.distribution(case_id, metrics.failure_of(requirement.metric)).n,
        Verdict.UNDECIDED,
        None,
        remark,
        evidence=results.evidence(case_id),
    )


def _judge(
    results: Results, case_id: str, requirement: Requirement, distribution: Distribution
) -> Judged:
    value, interval = _figure(distribution, requirement, case_id)
    ends = {requirement.holds(interval.low), requirement.holds(interval.high)}
    on_boards, reach = _on_boards(results, case_id, requirement, value, interval)
    if reach is not None:
        # On a board as on all of them, so that a looser bound is never worse.
        ends |= {requirement.holds(end) for end in reach}
    verdict = Verdict.UNDECIDED if len(ends) > 1 else Verdict.PASS if ends.pop() else Verdict.FAIL
    unknown = _is_unknown_on_boards(results, case_id, requirement)
    if unknown:
        verdict = Verdict.UNDECIDED
    needed = None
    p = _share_below(requirement)
    of_trials = not distribution.exact and verdict is Verdict.UNDECIDED
    if of_trials and p and distribution.independent < stats.least_trials(p):
        needed = stats.least_trials(p)
    remark = ""
    open_by_board = (
        verdict is Verdict.UNDECIDED
        and on_boards is not None
        and _turns(requirement, on_boards, interval)
    )
    if on_boards is not None and reach is not None and open_by_board and needed is None:
        remark = depends_on_boards(requirement, [(on_boards, reach)])
    elif verdict is Verdict.UNDECIDED and requirement.statistic == "max":
        remark = "a maximum cannot be proven by trials: require a quantile"
    elif verdict is Verdict.UNDECIDED and _residual_decides(distribution, requirement, case_id):
        remark = (
            f"the exact tier left out {distribution.residual * 100.0:.2g} % of connections, which "
            "would decide: predict with --tier events"
        )
    elif verdict is Verdict.UNDECIDED and distribution.noise is not None:
        remark = (
            "the costs that the exact tier draws are too few to decide: predict with --tier events "
            "and more predict_trials"
        )
    if unknown:
        remark = _not_compared(results, case_id)
    if requirement.statistic in _QUANTILES and math.isinf(value):
        remark = stats.failures_reach(_QUANTILES[requirement.statistic])
    return Judged(
        requirement,
        case_id,
        results.label(case_id),
        results.half,
        value,
        interval,
        distribution.n,
        verdict,
        needed,
        remark,
        on_boards,
        reach,
        results.evidence(case_id),
        _left_out(results, case_id, requirement),
    )


def _residual_decides(distribution: Distribution, requirement: Requirement, seed: str) -> bool:
    """Whether it is what an exact distribution leaves out that leaves a bound open."""
    if not distribution.residual:
        return False
    _, rest = _figure(replace(distribution, residual=0.0), requirement, seed)
    return requirement.holds(rest.low) == requirement.holds(rest.high)


def _on_boards(
    results: Results, case_id: str, requirement: Requirement, value: float, interval: Interval
) -> tuple[Interval, Interval] | tuple[None, None]:
    """The statistic on 95 % of the boards that a case's assumed figures allow, alone and with what
    trials leave open; None where every board is the same, and where failures reach ``value``,
    which is of all boards together."""
    on_boards = results.on_boards(case_id, requirement.metric)
    if on_boards is None or not math.isfinite(value) or requirement.statistic == "max":
        return None, None
    name = requirement.statistic
    reach = boards.statistic_reach(on_boards, name, interval)
    return boards.statistic_range(on_boards, name, value), reach


def _turns(requirement: Requirement, on_boards: Interval, interval: Interval) -> bool:
    """Whether it is the board that leaves a bound open: trials of all boards together decide, or
    the boards leave a part of what they do open that tells."""
    trials_decide = requirement.holds(interval.low) == requirement.holds(interval.high)
    return trials_decide or on_boards.half_width > _TELLS * interval.half_width


def _is_unknown_on_boards(results: Results, case_id: str, requirement: Requirement) -> bool:
    """Whether boards may differ in a time, and it is not known how: see `_not_compared`."""
    return metrics.is_time(requirement.metric) and (
        results.lacks_boards
        or (results.has_boards(case_id) and results.on_boards(case_id, requirement.metric) is None)
    )


def _not_compared(results: Results, case_id: str) -> str:
    """Why boards were not compared in a time, and what to do."""
    why = "the boards that assumed figures allow were not compared in this time"
    if results.lacks_boards:
        return f"{why}: predict again"
    if results.concurrent(case_id) > 1:
        return f"{why}, a part of several connections that wait for each other: require a whole one"
    return f"{why}: predict again with it in [require]"


def depends_on_boards(requirement: Requirement, cases: Sequence[tuple[Interval, Interval]]) -> str:
    """Why a requirement is undecided in some cases, by what the statistic is on each one's boards,
    alone and with what trials leave open."""
    ends, reaches = zip(*cases, strict=True)
    low, high = _hull(ends)
    name = {"p50": "a median", "mean": "a mean"}.get(
        requirement.statistic, f"a {requirement.statistic.upper()}"
    )
    over = " over these cases" * (len(cases) > 1)
    if not math.isfinite(high):
        return f"it depends on the board: failures may reach {name} on some{over}"
    allowed = f"{name} of {_rounded_ms(low)} to {_rounded_ms(high)} ms{over}"
    if not any(one.low <= requirement.bound <= one.high for one in ends):
        least, most = map(_rounded_ms, _hull(reaches))
        allowed += f", and trials leave {least} to {most} ms open"
    return f"it depends on the board, whose assumed figures allow {allowed}"


def _hull(ends: Sequence[Interval]) -> tuple[float, float]:
    return min(one.low for one in ends), max(one.high for one in ends)


def _rounded_ms(value_ns: float) -> str:
    """Three digits."""
    if not math.isfinite(value_ns):
        return "any number of"
    value = value_ns / 1e6
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


def _left_out(results: Results, case_id: str, requirement: Requirement) -> float:
    """The share of failed trials where the figure is of those that ended.

    Quantiles and maxima of times count a failure as later than all others; means cannot, and of
    bytes and counts a failed trial has no value.
    """
    if metrics.is_failure(requirement.metric):
        return 0.0
    if metrics.is_time(requirement.metric) and requirement.statistic != "mean":
        return 0.0
    return results.failed_share(case_id, requirement.metric)


def _share_below(requirement: Requirement) -> float | None:
    """The share of trials that must be seen to lie within the bound; None for means and maxima."""
    if metrics.is_failure(requirement.metric) and requirement.statistic == "mean":
        return 1.0 - requirement.bound if 0.0 < requirement.bound < 1.0 else None
    return _QUANTILES.get(requirement.statistic)


def _figure(
    distribution: Distribution, requirement: Requirement, seed: str
) -> tuple[float, Interval]:
    """The statistic that is required, with its interval."""
    if not metrics.is_failure(requirement.metric):
        return statistic(distribution, requirement.statistic, seed)
    if requirement.statistic == "mean":
        share = distribution.mean()
        if distribution.exact:
            return share, Interval(*distribution.share_ends(share))
        n = distribution.independent
        return share, stats.share_interval(share * n, n)
    value, interval = statistic(distribution, requirement.statistic, seed)
    # A connection, or a scenario, fails or it does not.
    return value, Interval(interval.low, min(1.0, interval.high))


def statistic(distribution: Distribution, name: str, seed: str) -> tuple[float, Interval]:
    """A statistic by name with its interval; ``seed`` is any text."""
    if name in _QUANTILES:
        p = _QUANTILES[name]
        return distribution.quantile(p), stats.quantile_interval(distribution, p)
    if name == "max":
        largest = np.inf if distribution.failed else float(distribution.values[-1])
        # The largest of some trials bounds the largest of all from below alone.
        return largest, Interval(largest, np.inf)
    # What failed has no time: a mean that leaves it out is a lower bound only.
    digest = hashlib.sha256(f"require {seed}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    interval = stats.mean_interval(distribution, rng)
    if distribution.failed:
        interval = Interval(interval.low, np.inf)
    return distribution.mean(), interval
