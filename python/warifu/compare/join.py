# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two halves joined by case: figures, intervals and verdicts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from warifu.compare import null_models, stats, strata
from warifu.compare.blocks import LEAST_PARTS, Blocks, Ints, quantile
from warifu.compare.conditions import Conditions, conditions, why_not_judged
from warifu.compare.exact import Bytes, compare_bytes
from warifu.compare.gates import RULE, SPREADS, Gate, Verdict, gates_for, worst
from warifu.compare.null_models import Beside
from warifu.compare.replay import replayed
from warifu.compare.rows import Halves, Row, mean_row, quantile_rows, responses_row, spread_row
from warifu.results import (
    MEASURED,
    PREDICTED,
    Distribution,
    Results,
    halves,
    interruptions,
    weakest,
)
from warifu.results.registration import version_words, was_before
from warifu.results.replay import ReplayOfCase, read_replay
from warifu.results.trials import Trials

#: The statistics that are compared, and the quantile of each; the mean has none.
STATISTICS: dict[str, float | None] = {"p50": 0.50, "mean": None, "p95": 0.95, "p99": 0.99}
BYTES = ("bytes.client_sent", "bytes.server_sent")
#: In place of the verdict of a gate that has none.
NOT_JUDGED = "not judged"


class CompareError(Exception):
    """Two halves that cannot be compared; its text is one line that names the fix."""


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
    #: Why nothing of it is judged.
    not_judged: str = ""
    #: How it was measured.
    conditions: Conditions = field(default_factory=Conditions)
    #: Our prediction beside such as need no simulator; none where they are not known.
    null_models: list[Beside] = field(default_factory=list)
    #: Connections that were replayed, and those of them in which a packet has no counterpart.
    replayed: int = 0
    divergent: int = 0
    #: What of the comparison there was nothing to make of, a clause each.
    missing: list[str] = field(default_factory=list)

    @property
    def gates(self) -> dict[str, int]:
        """How many gates passed, failed, are undecided and are not judged."""
        found = dict.fromkeys((*map(str, Verdict), NOT_JUDGED), 0)
        for row in self.rows:
            if row.gate is not None:
                found[str(row.verdict or NOT_JUDGED)] += 1
        for one in self.bytes if self.bytes_gated else []:
            found[str(one.verdict)] += 1
        return found

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
    #: Whether the measured half names this prediction as the one that was there before it.
    registered: bool = False
    #: The predictor's commit, where known.
    predictor: str | None = None
    #: What the measured half warns of: a verdict on contended trials says little.
    warnings: Sequence[str] = ()
    #: What of the study each half has that was cut short.
    interrupted: Sequence[str] = ()

    def count(self, verdict: Verdict | None) -> int:
        """Cases with this verdict."""
        return sum(case.verdict == verdict for case in self.cases)

    @property
    def gates(self) -> dict[str, int]:
        """How many gates of all cases passed, failed, are undecided and are not judged."""
        each = [case.gates for case in self.cases]
        return {name: sum(one[name] for one in each) for name in (*map(str, Verdict), NOT_JUDGED)}


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
    ours, theirs = Results.open(predicted), Results.open(measured)
    replays = read_replay(predicted.parent, ours.run_id, theirs.run_id)
    return compare(ours, theirs, progress, replays)


def compare(
    predicted: Results,
    measured: Results,
    progress: Callable[[int, int], None] = lambda done, of: None,
    replays: Mapping[str, ReplayOfCase] | None = None,
) -> Comparison:
    """Joins two halves by case, and what was replayed of them.

    Raises CompareError where that would be dishonest.
    """
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
        replay = (replays or {}).get(case_id)
        cases.append(compare_case(predicted, measured, case_id, tests, replay))
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
        registered=was_before(predicted.manifest, measured.manifest),
        predictor=_predictor(predicted.manifest),
        interrupted=interruptions(predicted, measured),
        warnings=[str(one) for one in measured.manifest.get("warnings") or []],
    )


def _predictor(manifest: Mapping[str, Any]) -> str | None:
    commit = manifest.get("commit")
    if not isinstance(commit, str):
        return None
    return version_words(commit, manifest.get("dirty"))


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
    predicted: Results,
    measured: Results,
    case_id: str,
    tests: int = len(BYTES),
    replay: ReplayOfCase | None = None,
) -> CaseComparison:
    """Compares one case, whose bytes are among ``tests`` that are judged together; seeded by the
    study and the case, so a repetition gives the same."""
    rng = np.random.default_rng(_seed(predicted.manifest.get("seed", 0), case_id))
    whole, phases = predicted.whole(case_id), predicted.phases(case_id)
    later = predicted.later(case_id)
    found = {
        metric: _halves(predicted, measured, case_id, metric) for metric in (whole, *phases, *later)
    }
    judging = found[whole]
    ours, theirs = judging.ours, judging.theirs
    loss = mean_loss(predicted, case_id)
    gates = {gate.statistic: gate for gate in gates_for(loss)}
    how = conditions(measured, case_id)
    why_not = why_not_judged(predicted, case_id, how)
    computing_share = _computing_share(predicted, case_id, theirs)
    rows = _rows(whole, judging, gates, computing_share, rng)
    models = predicted.strata(case_id)
    missing: list[str] = []
    if gates and rows:
        answered = responses_row(whole, judging)
        rows += [] if answered is None else [answered]
        trials = measured.trials(case_id)
        if loss <= 0.0:
            sittings = _sittings_ns(measured, case_id, trials)
            rows += [
                spread_row(whole, name, _quantile_of(name), judging, sittings[name], rng)
                for name in SPREADS
            ]
        else:
            more, why = _strata_rows(predicted, measured, case_id, trials, gates["mean"])
            rows += more
            missing += [why] if why else []
    pairs = None if replay is None or not gates else replayed(whole, replay, computing_share)
    if pairs is not None:
        rows += pairs.rows
    elif gates:
        missing.append("nothing was replayed")
    if why_not:
        rows = [row if row.gate is None else _without_verdict(row, why_not) for row in rows]
    beside = [] if models is None else null_models.beside(models.null_models, rows)
    for metric in (*phases, *later):
        rows += _rows(metric, found[metric], {}, 0.0, rng)
    sizes = _sizes(predicted, measured, case_id, tests)
    bytes_gated = loss <= 0.0 and not why_not
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
        limit=judging.limit,
        evidence_predicted=predicted.evidence(case_id),
        evidence_measured=measured.evidence(case_id),
        rows=rows,
        bytes=sizes,
        bytes_gated=bytes_gated,
        wasserstein=stats.wasserstein(ours, theirs, rng, judging.limit),
        kolmogorov=stats.kolmogorov(ours, theirs),
        verdict=_case_verdict(rows, sizes if bytes_gated else []),
        later=[one for one in later if any(row.metric == one for row in rows)],
        not_judged=why_not,
        conditions=how,
        null_models=beside,
        replayed=0 if pairs is None else pairs.connections,
        divergent=0 if pairs is None else pairs.divergent,
        missing=missing,
    )


def _halves(predicted: Results, measured: Results, case_id: str, metric: str) -> Halves:
    """A metric of a case in both halves, with the block of each measured trial."""
    ours, theirs = (half.distribution(case_id, metric) for half in (predicted, measured))
    trials = measured.trials(case_id, metric)
    parts = _connections_together(measured, case_id, trials)
    blocks = Blocks.of_parts(parts, trials.size)
    return Halves(ours, theirs, trials.values, blocks, common_limit(ours, theirs))


def _connections_together(measured: Results, case_id: str, trials: Trials) -> Ints | None:
    """The block of each connection: its part; where a trial has several connections and parts are
    too few, its trial, since they share it."""
    if measured.concurrent(case_id) > 1 and np.unique(trials.trial).size < trials.size:
        parts = trials.part
        if parts is None or np.unique(parts).size < LEAST_PARTS:
            return trials.trial
    return trials.part


def _sizes(predicted: Results, measured: Results, case_id: str, tests: int) -> list[Bytes]:
    return [
        one
        for metric in BYTES
        if (
            one := compare_bytes(
                metric,
                predicted.distribution(case_id, metric),
                measured.distribution(case_id, metric),
                tests,
            )
        )
    ]


def _computing_share(predicted: Results, case_id: str, theirs: Distribution) -> float:
    """The share of the measured median that the ends compute, 0 to 1: all of it without delay, and
    what the prediction says of its null model with it."""
    models = predicted.strata(case_id)
    if not predicted.cases[case_id].get("rtt_ns"):
        return 1.0
    median = theirs.quantile(0.5)
    if models is None or not median or not math.isfinite(median):
        return 0.0
    return min(1.0, models.null_models.computing_ns / median)


def _sittings_ns(measured: Results, case_id: str, trials: Trials) -> dict[str, float]:
    """By how much a quantile's distance from the median differs between the sittings of a case; 0
    of one sitting."""
    parts = measured.parts(case_id)
    if trials.part is None or len({part.sitting for part in parts}) < 2:
        return dict.fromkeys(SPREADS, 0.0)
    of = np.array([part.sitting for part in parts])[trials.part]
    found = {}
    for name in SPREADS:
        each = [
            quantile(values, _quantile_of(name)) - quantile(values, 0.5)
            for values in (trials.values[of == sitting] for sitting in np.unique(of))
        ]
        found[name] = max(each) - min(each) if all(map(math.isfinite, each)) else 0.0
    return found


def _strata_rows(
    predicted: Results, measured: Results, case_id: str, trials: Trials, gate: Gate
) -> tuple[list[Row], str]:
    """Gates on strata, or why there are none."""
    ours = predicted.strata(case_id)
    if ours is None or not ours.trials:
        return [], "the prediction has no strata"
    theirs, n = strata.of_trials(trials), float(trials.size)
    own = measured.strata(case_id)
    if theirs is None and own is not None:
        # Of a prediction that stands in for a measurement.
        theirs, n = strata.of_prediction(own), own.trials
    if theirs is None:
        return [], "SYN timeouts and retransmissions were not measured"
    return strata.strata_rows(ours, theirs, n, gate), ""


def _without_verdict(row: Row, why: str) -> Row:
    return replace(row, verdict=None, no_statement=why, trials_needed=None)


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
    found: Halves,
    gates: dict[str, Gate],
    computing_share: float,
    rng: np.random.Generator,
) -> list[Row]:
    """All statistics of a metric."""
    if not found.ours.values.size or not found.theirs.values.size:
        return []
    rows: list[Row] = []
    for statistic, p in STATISTICS.items():
        gate = gates.get(statistic)
        if p is None:
            rows.append(mean_row(metric, found, gate, computing_share, rng))
        else:
            rows += quantile_rows(metric, statistic, p, found, gate, computing_share, rng)
    return rows


def _quantile_of(statistic: str) -> float:
    """0.95 for `p95`."""
    return int(statistic[1:]) / 100.0


def _seed(study_seed: object, case_id: str) -> int:
    digest = hashlib.sha256(f"compare {study_seed} {case_id}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
