# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A study's `[require]`: bounds on statistics, judged for every case by its interval."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warifu.compare import stats
from warifu.compare.gates import Verdict
from warifu.compare.stats import Interval
from warifu.results import Distribution, Results

_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Requirement:
    """``metric.statistic operator bound``; the bound is in the metric's unit (ns, B or 1)."""

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

    @property
    def margin(self) -> float:
        """How far the value is inside its bound, as a share of it; negative beyond."""
        room = (self.requirement.bound - self.value) / (abs(self.requirement.bound) or 1.0)
        return room if self.requirement.operator.startswith("<") else -room


def requirements(raw: Sequence[Sequence[object]]) -> list[Requirement]:
    """From (metric, statistic, operator, bound, text), as studies and manifests have them."""
    return [
        Requirement(str(metric), str(statistic), str(operator), float(str(bound)), str(text))
        for metric, statistic, operator, bound, text in raw
    ]


def judge_all(results: Results, wanted: Sequence[Requirement]) -> list[Judged]:
    """Every requirement on every case of a half that has its metric."""
    judged = []
    for case_id in results.cases:
        for requirement in wanted:
            distribution = results.distribution(case_id, requirement.metric)
            if distribution.values.size or distribution.failed:
                judged.append(_judge(results, case_id, requirement, distribution))
    return judged


def _judge(
    results: Results, case_id: str, requirement: Requirement, distribution: Distribution
) -> Judged:
    value, interval = statistic(distribution, requirement.statistic, case_id)
    ends = {requirement.holds(interval.low), requirement.holds(interval.high)}
    verdict = Verdict.UNDECIDED if len(ends) > 1 else Verdict.PASS if ends.pop() else Verdict.FAIL
    needed = None
    p = _QUANTILES.get(requirement.statistic)
    if verdict is Verdict.UNDECIDED and p and distribution.independent < stats.least_trials(p):
        needed = stats.least_trials(p)
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
    )


def statistic(distribution: Distribution, name: str, seed: str) -> tuple[float, Interval]:
    """A statistic by name with its interval; ``seed`` is any text."""
    if name in _QUANTILES:
        p = _QUANTILES[name]
        return distribution.quantile(p), stats.quantile_interval(distribution, p)
    if name == "max":
        largest = np.inf if distribution.failed else float(distribution.values[-1])
        return largest, Interval(largest, largest)
    # A failed connection has no time: a mean that leaves it out is a lower bound only.
    digest = hashlib.sha256(f"require {seed}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    interval = stats.mean_interval(distribution, rng)
    if distribution.failed:
        interval = Interval(interval.low, np.inf)
    return distribution.mean(), interval
