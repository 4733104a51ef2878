# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two halves joined by case: figures, intervals and verdicts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from warifu.compare import stats
from warifu.compare.exact import Bytes, compare_bytes
from warifu.compare.gates import (
    RULE,
    TOO_WIDE,
    Gate,
    Verdict,
    gates_for,
    judge,
    trials_needed,
    worst,
)
from warifu.compare.stats import Interval
from warifu.results import (
    MEASURED,
    PREDICTED,
    Distribution,
    Results,
    halves,
    interruptions,
    weakest,
)

#: The statistics that are compared, and the quantile of each; the mean has none.
STATISTICS: dict[str, float | None] = {"p50": 0.50, "mean": None, "p95": 0.95, "p99": 0.99}
BYTES = ("bytes.client_sent", "bytes.server_sent")


class CompareError(Exception):
    """Two halves that cannot be compared; its text is one line that names the fix."""


@dataclass(frozen=True)
class Row:
    """One statistic of one metric in both halves, ns; ``difference`` is predicted - measured."""

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
    #: About how many measured trials would decide an undecided gate.
    trials_needed: int | None = None
    #: Whether the quantile lies on the edge of an atom, so that its difference may jump.
    on_edge: bool = False

    @property
    def relative(self) -> float:
        """The difference as a share of the measured value."""
        if not self.measured or not math.isfinite(self.measured):
            return math.nan
        return self.difference / self.measured


@dataclass(frozen=True)
class CaseComparison:
    """One case in both halves."""

    case_id: str
    label: str
    #: What is judged: the whole time of a connection.
    metric: str
    #: Its parts, each a metric of its own.
    phases: list[str]
    loss: float
    n_predicted: float
    n_measured: float
    failed_predicted: float
    failed_measured: float
    #: Where means were cut because of failed connections, ns; infinite without any.
    limit: float
    evidence_predicted: str
    evidence_measured: str
    rows: list[Row]
    bytes: list[Bytes]
    bytes_gated: bool
    wasserstein: stats.Distance
    kolmogorov: tuple[float, float]
    verdict: Verdict | None
    #: Times that end after the whole time, where both halves have them; no gate judges them.
    later: list[str] = field(default_factory=list)

    @property
    def no_statement(self) -> bool:
        """Whether it has gates, and none of them says anything."""
        return self.verdict is None and any(row.no_statement for row in self.rows)

    def row(self, statistic: str, metric: str | None = None) -> Row | None:
        """The row of a statistic of a metric, or of the one that is judged, if it was compared."""
        wanted = (metric or self.metric, statistic)
        found = (row for row in self.rows if (row.metric, row.statistic) == wanted)
        return next(found, None)


@dataclass(frozen=True)
class Comparison:
    """A study's two halves, case by case."""

    study: str
    predicted_run: str
    measured_run: str
    cases: list[CaseComparison]
    only_predicted: list[str]
    only_measured: list[str]
    verdict: Verdict | None
    rule: str = RULE
    #: The weakest evidence that any prediction here rests on.
    evidence: str = "assumed"
    #: When the later half was finished, RFC 3339; `~` if one is not.
    halves_finished: str = "~"
    #: What the measured half warns of: a verdict on contended trials says little.
    warnings: Sequence[str] = ()
    #: What of the study each half has that was cut short.
    interrupted: Sequence[str] = ()

    def count(self, verdict: Verdict | None) -> int:
        """Cases with this verdict."""
        return sum(case.verdict == verdict for case in self.cases)


def compare_folder(
    path: Path, progress: Callable[[int, int], None] = lambda done, of: None
) -> Comparison:
    """Compares the halves at ``path`` (a study's results, or one of its halves).

    Raises CompareError or ResultsError where a half is missing or must not be used.
    """
    predicted, measured = halves(path)
    if predicted is None:
        raise CompareError(f"{path}: has no predicted half: run `warifu predict` first")
    if measured is None:
        raise CompareError(
            f"{path}: has no measured half, so nothing can be compared: run `warifu measure` first"
        )
    return compare(Results.open(predicted), Results.open(measured), progress)


def compare(
    predicted: Results,
    measured: Results,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Comparison:
    """Joins two halves by case. Raises CompareError where that would be dishonest."""
    refuse(predicted, measured)
    shared = [case_id for case_id in predicted.cases if case_id in measured.cases]
    if not shared:
        raise CompareError(
            f"{predicted.path} and {measured.path}: have no case in common: "
            "predict and measure the same study"
        )
    # Both directions of every case whose bytes are judged.
    tests = len(BYTES) * sum(mean_loss(predicted, one) <= 0.0 for one in shared)
    cases = []
    for done, case_id in enumerate(shared):
        progress(done, len(shared))
        cases.append(compare_case(predicted, measured, case_id, tests))
    progress(len(shared), len(shared))
    return Comparison(
        study=predicted.study,
        predicted_run=predicted.run_id,
        measured_run=measured.run_id,
        cases=cases,
        only_predicted=[predicted.label(one) for one in predicted.cases if one not in shared],
        only_measured=[measured.label(one) for one in measured.cases if one not in shared],
        verdict=worst([case.verdict for case in cases if case.verdict is not None]),
        evidence=weakest([case.evidence_predicted for case in cases]),
        halves_finished=max(
            str(half.manifest.get("finished") or "~") for half in (predicted, measured)
        ),
        interrupted=interruptions(predicted, measured),
        warnings=[str(one) for one in measured.manifest.get("warnings") or []],
    )


def refuse(predicted: Results, measured: Results) -> None:
    """Raises CompareError if the prediction knows the run that it would be judged by."""
    for results, half in ((predicted, PREDICTED), (measured, MEASURED)):
        if results.half != half:
            raise CompareError(
                f"{results.path}/manifest.json: half is {results.half!r}: expected {half!r}: "
                "name the folder above both halves"
            )
    calibration = set(predicted.manifest.get("calibration_run_ids") or [])
    if measured.run_id in calibration:
        raise CompareError(
            f"{predicted.path}: was calibrated on run {measured.run_id}, by which it would be "
            "judged: measure again, or calibrate on another run"
        )


def compare_case(
    predicted: Results, measured: Results, case_id: str, tests: int = len(BYTES)
) -> CaseComparison:
    """Compares one case, whose bytes are among ``tests`` that are judged together; seeded by the
    study and the case, so a repetition gives the same."""
    rng = np.random.default_rng(_seed(predicted.manifest.get("seed", 0), case_id))
    whole, phases = predicted.whole(case_id), predicted.phases(case_id)
    later = predicted.later(case_id)
    halves_of = {
        metric: (predicted.distribution(case_id, metric), measured.distribution(case_id, metric))
        for metric in (whole, *phases, *later, *BYTES)
    }
    ours, theirs = halves_of[whole]
    loss = mean_loss(predicted, case_id)
    gates = {gate.statistic: gate for gate in gates_for(loss)}
    limit = common_limit(ours, theirs)
    rows = [
        row
        for metric in (whole, *phases, *later)
        for row in _rows(metric, *halves_of[metric], gates if metric == whole else {}, limit, rng)
    ]
    sizes = [found for one in BYTES if (found := compare_bytes(one, *halves_of[one], tests))]
    bytes_gated = loss <= 0.0
    return CaseComparison(
        case_id=case_id,
        label=predicted.label(case_id),
        metric=whole,
        phases=list(phases),
        loss=loss,
        n_predicted=ours.n,
        n_measured=theirs.n,
        failed_predicted=ours.failed,
        failed_measured=theirs.failed,
        limit=limit,
        evidence_predicted=predicted.evidence(case_id),
        evidence_measured=measured.evidence(case_id),
        rows=rows,
        bytes=sizes,
        bytes_gated=bytes_gated,
        wasserstein=stats.wasserstein(ours, theirs, rng, limit),
        kolmogorov=stats.kolmogorov(ours, theirs),
        verdict=_case_verdict(rows, sizes if bytes_gated else []),
        later=[one for one in later if any(row.metric == one for row in rows)],
    )


def _case_verdict(rows: Sequence[Row], sizes: Sequence[Bytes]) -> Verdict | None:
    """The worst verdict of a case, None where nothing is judged.

    Where the gates of the times say nothing, equal bytes do not make the case pass.
    """
    times = [row.verdict for row in rows if row.verdict is not None]
    verdict = worst(times + [one.verdict for one in sizes])
    silent = not times and any(row.no_statement for row in rows)
    return None if silent and verdict is Verdict.PASS else verdict


def mean_loss(predicted: Results, case_id: str) -> float:
    """The share of packets that a case loses in the long run. Raises CompareError without it:
    the gates depend on it."""
    loss = predicted.cases[case_id].get("loss_mean")
    if not isinstance(loss, float):
        raise CompareError(
            f"{predicted.path}: case {case_id} has no loss_mean: run `warifu predict` again"
        )
    return loss


def common_limit(ours: Distribution, theirs: Distribution) -> float:
    """Where both halves' means are cut if a connection failed: the last time seen measured.

    A failed connection's time is unknown but longer than that; leaving it out would flatter.
    """
    if not ours.failed and not theirs.failed:
        return math.inf
    return float(theirs.values[-1]) if theirs.values.size else math.inf


def _rows(
    metric: str,
    ours: Distribution,
    theirs: Distribution,
    gates: dict[str, Gate],
    limit: float,
    rng: np.random.Generator,
) -> Sequence[Row]:
    if not ours.values.size or not theirs.values.size:
        return []
    if not gates:
        limit = common_limit(ours, theirs)
    rows = []
    for statistic, p in STATISTICS.items():
        if p is None:
            values = ours.mean(limit), theirs.mean(limit)
            interval = stats.mean_difference(ours, theirs, rng, limit)
        else:
            values = ours.quantile(p), theirs.quantile(p)
            interval = stats.quantile_difference(ours, theirs, p, rng)
        rows.append(_row(metric, statistic, values, interval, gates.get(statistic), theirs))
    return rows


def _row(
    metric: str,
    statistic: str,
    values: tuple[float, float],
    interval: Interval,
    gate: Gate | None,
    theirs: Distribution,
) -> Row:
    predicted, measured = values
    difference = predicted - measured
    p = STATISTICS[statistic]
    on_edge = p is not None and _on_edge(theirs, p)
    row = Row(metric, statistic, predicted, measured, difference, interval, on_edge=on_edge)
    if gate is None:
        return row
    row = replace(row, gate=gate.text())
    if p is not None and math.isinf(predicted) and math.isinf(measured):
        return replace(row, no_statement=stats.failures_reach(p) + " in both halves")
    # Where failures reach the measured quantile it has no value to take a share of.
    width = gate.width_ns(measured if math.isfinite(measured) else predicted)
    if gate.is_too_wide(measured):
        return replace(row, width=width, no_statement=TOO_WIDE)
    verdict = judge(interval, width)
    needed = None
    if verdict is Verdict.UNDECIDED:
        needed = trials_needed(interval, difference, width, theirs.independent)
        if p is not None and needed is None and theirs.independent < stats.least_trials(p):
            needed = stats.least_trials(p)
    return replace(row, width=width, verdict=verdict, trials_needed=needed)


def _on_edge(distribution: Distribution, p: float) -> bool:
    """Whether a tenth of the value lies between the ends of the quantile's interval."""
    low, high = stats.quantile_interval(distribution, p)
    return high - low > 0.1 * distribution.quantile(p)


def _seed(study_seed: object, case_id: str) -> int:
    digest = hashlib.sha256(f"compare {study_seed} {case_id}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
