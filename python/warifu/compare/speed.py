# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How quick the machine was while it measured, from the cells that calibrated the prediction.

A virtual machine computes up to a quarter quicker or slower than an hour before, which a prediction
knows as a spread and not as a time. A calibrated cell is not judged, since the prediction knows it;
measured again between the judged ones, it says what the same computing took now. By what its
computing takes relative to the prediction, part by part, the prediction of the judged cells is
moved, in proportion to their own computing, before P50 and the mean are judged. So an error that
all cells share (a calibration that is too quick in everything) is not told from a machine that has
become slower, and is no failure; that the judged cells have another curve, certificate,
authentication or RTT is still predicted. Of a machine of quite another speed nothing is judged: it
is not the one that was predicted, and one number does not tell how its cells differ (by 1.4 to 2.1
times where they took 1.8 times as long together, in the run of studies/accuracy/2026-11-30-2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warifu.compare.blocks import Ints, quantile
from warifu.compare.conditions import conditions, is_calibrated, why_disturbed
from warifu.compare.gates import MOST_APART
from warifu.compare.power import Error
from warifu.compare.stats import Interval
from warifu.results import Floats, Results
from warifu.results.parts import LEAST_PARTS, Part

#: Rounds beyond `MOST_APART` that are allowed, as a share: each is of few connections.
_ROUNDS_BEYOND = 1 / 3
#: What a statistic that is judged so is called, after its name.
AT_ITS_SPEED = " at the machine's speed"
#: So many times the median time from one round to the next a part may be away from the nearest
#: round; what the machine did later is not known. A part that was put off is within 1.1 of them in
#: the runs of studies/accuracy, a part of another sitting hundreds away.
FURTHEST = 2.0


@dataclass(frozen=True)
class MachineSpeed:
    """What computing took while a study was measured, as a share of what was predicted."""

    #: Of each round, in which every cell has one part, measured / predicted.
    by_round: tuple[float, ...]
    #: When each round began, about, seconds since 1970; its number where that was not recorded.
    began: tuple[float, ...]
    #: Calibrated cells that say so.
    cells: int
    #: Whether these cells and those that are judged by it wait for round trips: what a processor
    #: computes after a wait takes longer.
    delayed: bool

    @property
    def mean(self) -> float:
        """Of all rounds; above 1 the machine was slower than when it was calibrated."""
        return float(np.mean(self.by_round))

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the mean, from how rounds differ."""
        count = len(self.by_round)
        error = float(np.std(self.by_round, ddof=1)) / math.sqrt(count)
        return Error(error, count - 1.0).interval(self.mean)

    def of_parts(self, parts: Sequence[Part]) -> Floats:
        """Of each part of a cell, that of the round that began nearest to it: a part that was
        measured again is of a later round than its number says."""
        began = _began(parts)
        nearest, _ = _nearest(began, np.asarray(self.began))
        found: Floats = np.asarray(self.by_round)[nearest]
        return found

    def knows(self, parts: Sequence[Part]) -> bool:
        """Whether each part of a cell was measured near enough to a round."""
        rounds = np.asarray(self.began)
        _, apart = _nearest(_began(parts), rounds)
        return bool((apart <= _furthest(rounds)).all())


def machine_speeds(
    predicted: Results, measured: Results, shared: Sequence[str]
) -> list[MachineSpeed]:
    """Of the cases ``shared`` by both halves: without delay, and with it, as far as calibrated
    cells without loss were measured in enough parts and undisturbed."""
    found: dict[tuple[bool, int], list[tuple[Floats, Floats]]] = {}
    for case_id in shared:
        by_part = _of_cell(predicted, measured, case_id)
        if by_part is not None:
            delayed = bool(predicted.cases[case_id].get("rtt_ns"))
            began = _began(measured.parts(case_id))
            found.setdefault((delayed, by_part.size), []).append((began, by_part))
    speeds = (
        _of_rounds(cells, delayed)
        for (delayed, _), cells in sorted(found.items(), key=lambda item: item[0])
    )
    return [one for one in speeds if one is not None]


def why_another(speeds: Sequence[MachineSpeed]) -> str:
    """Why a study's machine is not the one that was calibrated; empty where it may be."""
    for one in speeds:
        took = f"{one.mean:.2f} times"
        rounds = np.asarray(one.by_round)
        beyond = float(np.mean((rounds < 1.0 / MOST_APART) | (rounds > MOST_APART)))
        if 1.0 / MOST_APART <= one.mean <= MOST_APART:
            if beyond <= _ROUNDS_BEYOND:
                continue
            took = f"{rounds.min():.2f} to {rounds.max():.2f} times"
        return (
            f"the machine's computing took {took} what it took when it was calibrated, "
            f"{1.0 / MOST_APART:.2f} to {MOST_APART:.2f} are allowed: calibrate and measure again"
        )
    return ""


def speed_for(
    speeds: Sequence[MachineSpeed], predicted: Results, case_id: str, parts: Sequence[Part]
) -> tuple[MachineSpeed | None, str]:
    """That of the cells which a case's own ``parts`` lie between. None where there is none, with
    the reason if there are such cells."""
    delayed = bool(predicted.cases[case_id].get("rtt_ns"))
    known = [one for one in speeds if one.delayed == delayed]
    if not known:
        return None, ""
    alike = next((one for one in known if len(one.began) == len(parts)), None)
    if alike is None:
        counts = " and ".join(str(len(one.began)) for one in known)
        return None, f"{_NOT_AT_IT}: it has {len(parts)} parts, the calibrated cells {counts}"
    if not alike.knows(parts):
        return None, f"{_NOT_AT_IT}: a part was measured long before or after the calibrated cells"
    return alike, ""


#: Columns of a case whose time is no computing.
_NOT_SPEED = ("jitter_max_ns", "rate_up_bps", "rate_down_bps")
#: What there is nothing of without a speed.
_NOT_AT_IT = "nothing is judged at the machine's speed"


def computing_ns(predicted: Results, case_id: str) -> float | None:
    """The predicted median without its round trips, ns; None where they are not known, and where
    it is more than computing: a key store's time, a rate's or a jitter's does not change with the
    processor's."""
    case = predicted.cases[case_id]
    if case.get("key_store") not in (None, "software") or any(case.get(key) for key in _NOT_SPEED):
        return None
    models = predicted.strata(case_id)
    if models is None:
        return None
    median = predicted.distribution(case_id, predicted.whole(case_id)).quantile(0.5)
    left = median - models.null_models.of_round_trips_ns
    return left if math.isfinite(left) and left > 0.0 else None


def _of_cell(predicted: Results, measured: Results, case_id: str) -> Floats | None:
    """Measured / predicted computing of each part of a calibrated cell; None of another."""
    case = predicted.cases[case_id]
    if case.get("loss_mean") or not is_calibrated(predicted.manifest, case, case_id):
        return None
    computing = computing_ns(predicted, case_id)
    models = predicted.strata(case_id)
    how = conditions(measured, case_id)
    if computing is None or models is None or why_disturbed(case, how):
        return None
    trials = measured.trials(case_id)
    if trials.part is None or how.parts < LEAST_PARTS:
        return None
    round_trips = models.null_models.of_round_trips_ns
    medians = np.array([quantile(trials.values[trials.part == k], 0.5) for k in range(how.parts)])
    ratios: Floats = (medians - round_trips) / computing
    return ratios if np.isfinite(ratios).all() and (ratios > 0.0).all() else None


def _began(parts: Sequence[Part]) -> Floats:
    """When each part began; its number where that was not recorded of all."""
    times = [part.began for part in parts if part.began is not None]
    return np.array(times if len(times) == len(parts) else range(len(parts)), dtype=np.float64)


def _nearest(began: Floats, rounds: Floats) -> tuple[Ints, Floats]:
    """The round that began nearest to each part, and the time between both."""
    apart = np.abs(began[:, None] - rounds[None, :])
    return apart.argmin(axis=1), apart.min(axis=1)


def _furthest(rounds: Floats) -> float:
    """How far a part may be from the nearest round; a break between sittings is one of many times
    between rounds, so that it does not count."""
    return FURTHEST * float(np.median(np.diff(np.sort(rounds))))


def _of_rounds(cells: Sequence[tuple[Floats, Floats]], delayed: bool) -> MachineSpeed | None:
    """From when each cell's parts began, and what they say. A part counts to the round that it was
    measured in, which most cells' parts of its number are of; one that is far from every round
    counts to none. None where all are."""
    rounds = np.median([began for began, _ in cells], axis=0)
    began = np.concatenate([began for began, _ in cells])
    ratios = np.concatenate([by_part for _, by_part in cells])
    nearest, apart = _nearest(began, rounds)
    near = apart <= _furthest(rounds)
    held = np.unique(nearest[near])
    if not held.size:
        return None
    # In the order of time: a round whose parts were put off may be the last. One without a part is
    # between its neighbours.
    held = held[np.argsort(rounds[held])]
    means = np.array([ratios[near & (nearest == k)].mean() for k in held])
    by_round = np.interp(rounds, rounds[held], means)
    by_round[held] = means
    return MachineSpeed(tuple(by_round.tolist()), tuple(rounds.tolist()), len(cells), delayed)
