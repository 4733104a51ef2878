# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The figures of single cases, read once, and their differences."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from warifu.answer.model import Change
from warifu.compare import boards, stats
from warifu.compare.stats import Interval
from warifu.report.inputs import finest_ns
from warifu.results import PREDICTED, Distribution, Results, metrics

#: The normal quantile of a two-sided 95 % interval.
_Z = 1.959964
#: Atoms of a distribution that is kept: the intervals of quantiles are far wider than what this
#: coarsens.
_ATOMS = 4_000
_MEDIAN = 0.50
#: Cases that are kept in memory, some ten kilobytes each.
_MOST_KEPT = 4_000
#: Above this many cases an interval of a difference is made of the two intervals' ends, which is
#: wider than it need be, instead of by resampling.
_RESAMPLED_CASES = 400


@dataclass(frozen=True)
class Sample:
    """What a case took: times in ns, sizes in B."""

    times: Distribution
    #: Of IP packets on the link in both directions, or of what programs wrote: `on_link`.
    size: Distribution
    on_link: bool
    #: The standard error of its mean, B.
    size_error: float
    up: float
    down: float
    failed: float
    finest: float


class Samples:
    """The cases of one half."""

    def __init__(self, results: Results) -> None:
        """Reads nothing yet."""
        self.results = results
        self._kept: dict[str, Sample] = {}
        self._resampled = len(results.cases) <= _RESAMPLED_CASES

    def of(self, case_id: str) -> Sample:
        """A case's figures."""
        if case_id not in self._kept:
            self._kept[case_id] = _sample(self.results, case_id)
        return self._kept[case_id]

    @property
    def finest(self) -> float:
        """The coarsest of the last places that the times of what was read are known to, ns."""
        return max((one.finest for one in self._kept.values()), default=0.0)

    def forget_beyond_memory(self, but: str) -> None:
        """Drops what was read of very many cases, all ``but`` one."""
        if len(self._kept) > _MOST_KEPT:
            self._kept = {but: self._kept[but]}

    def prepare(self, case_ids: Iterable[str]) -> None:
        """Reads several cases, file by file."""
        for case_id in self.results.in_files(case_ids):
            self.of(case_id)

    def change(self, case_id: str, reference: str, p: float) -> Change:
        """A case's ``p`` quantile minus the reference's."""
        if case_id == reference:
            return Change(0.0, Interval(0.0, 0.0))
        value, interval = self._difference(case_id, reference, p)
        ours, theirs = (self.results.on_boards(one) for one in (case_id, reference))
        medians = tuple(self.of(one).times.quantile(_MEDIAN) for one in (case_id, reference))
        by_board = boards.median_difference(ours, theirs, (medians[0], medians[1]))
        if by_board is None:
            return Change(value, interval)
        # All boards together are among them. A tail is that of the slowest boards, which is not
        # what a choice makes on one board: that is between the tail's difference and the median's.
        low, high = min(value, by_board.low), max(value, by_board.high)
        of_median = interval if p == _MEDIAN else self._difference(case_id, reference, _MEDIAN)[1]
        half = of_median.half_width + boards.median_open(ours) + boards.median_open(theirs)
        together = Interval(
            min(interval.low, by_board.low - half), max(interval.high, by_board.high + half)
        )
        return Change(value, interval, Interval(low, high), together)

    def _difference(self, case_id: str, reference: str, p: float) -> tuple[float, Interval]:
        ours, theirs = self.of(case_id).times, self.of(reference).times
        value = _difference(ours.quantile(p), theirs.quantile(p))
        if self._resampled:
            rng = np.random.default_rng(_seed(f"{case_id} {reference} {p}"))
            return value, stats.quantile_difference(ours, theirs, p, rng)
        one, other = (stats.quantile_interval(of, p) for of in (ours, theirs))
        return value, Interval(*_ends(one, other))

    def size_change(self, case_id: str, reference: str) -> Change:
        """A case's mean size minus the reference's, with the normal interval."""
        ours, theirs = self.of(case_id).size, self.of(reference).size
        if case_id == reference or not ours.values.size or not theirs.values.size:
            value = 0.0 if case_id == reference else math.nan
            return Change(value, Interval(value, value))
        value = ours.mean() - theirs.mean()
        errors = (self.of(one).size_error for one in (case_id, reference))
        half = _Z * math.hypot(*errors)
        return Change(value, Interval(value - half, value + half))


def _sample(results: Results, case_id: str) -> Sample:
    on_link = results.distribution(case_id, "bytes.link")
    ends = [
        results.distribution(case_id, one) for one in ("bytes.client_sent", "bytes.server_sent")
    ]
    up, down = (one.mean() if one.values.size else math.nan for one in ends)
    size, size_error = on_link, _error(on_link)
    if not on_link.values.size and all(one.values.size for one in ends):
        # What programs wrote, where nobody counted packets. Results do not say how the directions
        # go together; at worst their errors add up.
        total = ends[0].mean() + ends[1].mean()
        size = Distribution.of([total], [ends[0].completed])
        size_error = _error(ends[0]) + _error(ends[1])
    predicted = results.half == PREDICTED
    return Sample(
        times=results.distribution(case_id, results.whole(case_id)).coarse(_ATOMS),
        size=size,
        on_link=bool(on_link.values.size),
        size_error=size_error,
        up=up,
        down=down,
        failed=results.failed_share(case_id, metrics.failure_of(results.whole(case_id))),
        finest=finest_ns(results.manifest, case_id) if predicted else 0.0,
    )


def _difference(one: float, other: float) -> float:
    """Infinite minus infinite is unknown."""
    return one - other if math.isfinite(one) or math.isfinite(other) else math.nan


def _ends(one: Interval, other: Interval) -> tuple[float, float]:
    low, high = one.low - other.high, one.high - other.low
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def _error(of: Distribution) -> float:
    """The standard error of the mean of those that completed."""
    if of.exact:
        return 0.0 if of.noise is None else of.noise.mean_error
    if not of.values.size:
        return 0.0
    variance = float(of.weights @ (of.values - of.mean()) ** 2 / of.completed)
    return math.sqrt(variance / max(1.0, of.completed))


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(f"answer {text}".encode()).digest()[:8], "little")
