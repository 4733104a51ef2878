# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One case in both halves: figures, intervals and verdicts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from warifu.compare import null_models, stats, strata
from warifu.compare.blocks import Blocks, Ints, quantile
from warifu.compare.comparison import STATISTICS, CaseComparison, CompareError
from warifu.compare.conditions import conditions, why_not_judged
from warifu.compare.exact import Bytes, compare_bytes
from warifu.compare.gates import SPREADS, Gate, Verdict, gates_for, worst
from warifu.compare.replay import replayed
from warifu.compare.rows import (
    Halves,
    Row,
    mean_row,
    quantile_rows,
    responses_row,
    spread_row,
    tells,
)
from warifu.compare.speed import (
    AT_ITS_SPEED,
    MachineSpeed,
    computing_ns,
    speed_for,
    why_another,
)
from warifu.results import Distribution, Floats, Results
from warifu.results.packets import can_be_replayed
from warifu.results.parts import LEAST_PARTS
from warifu.results.replay import ReplayOfCase, refuse_other_times
from warifu.results.trials import Trials

BYTES = ("bytes.client_sent", "bytes.server_sent")


def compare_case(
    predicted: Results,
    measured: Results,
    case_id: str,
    tests: int = len(BYTES),
    replay: ReplayOfCase | None = None,
    speeds: Sequence[MachineSpeed] = (),
) -> CaseComparison:
    """Compares one case, whose bytes are among ``tests`` that are judged together; seeded by the
    study and the case, so a repetition gives the same. Without loss, P50 and the mean are judged at
    the machine's speed where ``speeds`` say what it was."""
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
    why_not = why_not_judged(predicted, case_id, how) or why_another(speeds)
    computing_share = _computing_share(predicted, case_id, theirs)
    at, why_no_speed = None, ""
    if not why_not and loss <= 0.0:
        at, why_no_speed = _at_its_speed(predicted, measured, case_id, speeds)
    rows = _rows(whole, judging, {} if at else gates, computing_share, rng)
    if at is not None and gates:
        rows += at.rows(whole, judging, gates, computing_share, rows, rng)
    models = predicted.strata(case_id)
    missing = [why_no_speed] if why_no_speed else []
    timed = bool(rows)
    if gates:
        # Also where no connection got a response, and there is no time to judge.
        answered = responses_row(whole, judging)
        rows += [] if answered is None else [answered]
    if gates and timed:
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
    pairs = None
    if replay is not None:
        trials = measured.trials(case_id)
        refuse_other_times(measured.path.parent, case_id, replay, trials.values, trials.part)
    if replay is not None and gates:
        longer = None if at is None else at.longer_ns(replay.part)
        pairs = replayed(whole, replay, computing_share, longer)
    if pairs is not None and pairs.connections:
        rows += pairs.rows
    elif gates:
        missing.append("nothing was replayed")
    if why_not:
        rows = [row if row.gate is None else _without_verdict(row, why_not) for row in rows]
    replay_missing = bool(gates) and replay is None and _can_be_replayed(measured, case_id, theirs)
    beside = []
    if models is not None:
        beside = null_models.beside(models.null_models, rows, 0.0 if at is None else at.mean_ns)
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
        verdict=_case_verdict(rows, sizes if bytes_gated else [], whole=not replay_missing),
        later=[one for one in later if any(row.metric == one for row in rows)],
        not_judged=why_not,
        conditions=how,
        speed=None if at is None else at.speed,
        null_models=beside,
        replayed=0 if pairs is None else pairs.connections,
        divergent=0 if pairs is None else pairs.divergent,
        replay_missing=replay_missing,
        missing=missing,
    )


def _can_be_replayed(measured: Results, case_id: str, theirs: Distribution) -> bool:
    """Whether any of its connections can; one that failed has no time to hold against another."""
    return theirs.completed > 0 and can_be_replayed(measured.manifest, case_id)


@dataclass(frozen=True)
class _AtItsSpeed:
    """A case whose prediction is moved to the machine's speed."""

    speed: MachineSpeed
    computing_ns: float
    #: The speed in each part of the case.
    of_parts: Floats
    #: The part of each measured connection.
    part: Ints

    @property
    def mean_ns(self) -> float:
        """By what all parts together are predicted to take longer, ns."""
        return (self.speed.mean - 1.0) * self.computing_ns

    def longer_ns(self, part: Ints) -> Floats:
        """By what connections of these parts, one entry each, are predicted to take longer, ns."""
        longer: Floats = (self.of_parts[part] - 1.0) * self.computing_ns
        return longer

    def rows(
        self,
        metric: str,
        found: Halves,
        gates: dict[str, Gate],
        computing_share: float,
        raw: Sequence[Row],
        rng: np.random.Generator,
    ) -> list[Row]:
        """The gates of the whole time: each connection against a prediction for its part. What is
        measured stays as it is in ``raw``; the parts that give the errors move with their speed."""
        values = found.values - self.longer_ns(self.part)
        got = np.isfinite(values)
        theirs = Distribution.of(values[got], failed=float((~got).sum()))
        limit = common_limit(found.ours, theirs)
        moved = replace(found, theirs=theirs, values=values, limit=limit, unmoved=found.theirs)
        measured = {row.statistic: row.measured for row in raw}
        rows = []
        for row in _rows(metric, moved, gates, computing_share, rng):
            if row.gate is None:
                continue
            if row.unit == "ns":
                was = measured[row.statistic]
                # Where failures reach a quantile it has no value to be moved.
                ours = was + row.difference if math.isfinite(was) else row.predicted
                row = replace(row, predicted=ours, measured=was)
            rows.append(replace(row, statistic=row.statistic + AT_ITS_SPEED))
        return rows


def _at_its_speed(
    predicted: Results,
    measured: Results,
    case_id: str,
    speeds: Sequence[MachineSpeed],
) -> tuple[_AtItsSpeed | None, str]:
    """None where no speed is known, with the reason if calibrated cells were measured."""
    parts, part = measured.parts(case_id), measured.trials(case_id).part
    computing = computing_ns(predicted, case_id)
    if computing is None or part is None:
        return None, ""
    speed, why_not = speed_for(speeds, predicted, case_id, parts)
    if speed is None:
        return None, why_not
    return _AtItsSpeed(speed, computing, speed.of_parts(parts), part), ""


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
    """Bytes of both directions; none of probabilities, which are no counts."""
    found = []
    for metric in BYTES:
        ours, theirs = (half.distribution(case_id, metric) for half in (predicted, measured))
        one = None if ours.exact else compare_bytes(metric, ours, theirs, tests)
        found += [] if one is None else [one]
    return found


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


def sittings_ns(of: Ints, part: Ints, values: Floats) -> dict[str, float]:
    """By how much a quantile's distance from the median differs between two sittings, ns, beyond
    what trials differ by: sqrt(2) standard deviations between sittings. ``of`` is the sitting of
    each trial and ``part`` its part. 0 where not two sittings have the parts to tell their own
    errors, and the trials."""
    found = {}
    for name in SPREADS:
        p = _quantile_of(name)
        distances, squares = [], []
        for sitting in np.unique(of):
            of_it = values[of == sitting]
            blocks = Blocks.of_parts(part[of == sitting], of_it.size)
            if not (blocks.are_parts and tells(p, of_it.size)):
                continue
            error = blocks.jackknife(partial(_distance, of_it, p))
            distances.append(_distance(of_it, p, np.ones(of_it.size, dtype=np.bool_)))
            squares.append(error.of**2)
        found[name] = 0.0
        if len(distances) >= 2 and np.isfinite([*distances, *squares]).all():
            between = float(np.var(distances, ddof=1)) - float(np.mean(squares))
            found[name] = math.sqrt(max(0.0, 2.0 * between))
    return found


def _distance(values: Floats, p: float, kept: NDArray[np.bool_]) -> float:
    return quantile(values[kept], p) - quantile(values[kept], 0.5)


def _sittings_ns(measured: Results, case_id: str, trials: Trials) -> dict[str, float]:
    parts = measured.parts(case_id)
    if trials.part is None or len({part.sitting for part in parts}) < 2:
        return dict.fromkeys(SPREADS, 0.0)
    of = np.array([part.sitting for part in parts])[trials.part]
    return sittings_ns(of, trials.part, trials.values)


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


def _case_verdict(rows: Sequence[Row], sizes: Sequence[Bytes], *, whole: bool) -> Verdict | None:
    """The worst verdict of a case, None where nothing is judged.

    Where no gate of a time is judged, what connections sent (bytes, retransmissions) and that they
    got their response do not make the case pass. Where gates that it could have are missing it is
    not ``whole``, and does not pass by the others.
    """
    judged = [row for row in rows if row.verdict is not None]
    verdict = worst([row.verdict for row in judged if row.verdict] + [of.verdict for of in sizes])
    silent = not any(map(_is_of_times, judged)) and any(row.no_statement for row in rows)
    if verdict is not Verdict.PASS:
        return verdict
    if silent:
        return None
    return verdict if whole else Verdict.UNDECIDED


def _is_of_times(row: Row) -> bool:
    """Whether a gate holds against wrong times: shares of connections do only within a time."""
    return row.unit == "ns" or " share" in row.statistic


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
