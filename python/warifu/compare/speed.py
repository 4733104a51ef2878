# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How quick the machine was while it measured, from the cells that calibrated the prediction.

A virtual machine computes up to a quarter quicker or slower than an hour before, which a prediction
knows as a spread and not as a time. A calibrated cell is not judged, since the prediction knows it;
measured again between the judged ones, it says what the same computing took now. By what its
computing takes relative to the prediction, part by part, the prediction of the judged cells is
moved, in proportion to their own computing, before P50 and the mean are judged. Only the machine's
speed is taken from it: that the judged cells have another curve, certificate, authentication or RTT
is still predicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warifu.compare.blocks import quantile
from warifu.compare.conditions import conditions, is_calibrated, why_disturbed
from warifu.compare.power import Error
from warifu.compare.stats import Interval
from warifu.results import Floats, Results
from warifu.results.parts import LEAST_PARTS, Part

#: What a statistic that is judged so is called, after its name.
AT_ITS_SPEED = " at the machine's speed"


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
        nearest = np.abs(began[:, None] - np.asarray(self.began)[None, :]).argmin(axis=1)
        found: Floats = np.asarray(self.by_round)[nearest]
        return found


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
    return [
        _of_rounds(cells, delayed)
        for (delayed, _), cells in sorted(found.items(), key=lambda item: item[0])
    ]


def speed_for(
    speeds: Sequence[MachineSpeed], predicted: Results, case_id: str, parts: Sequence[Part]
) -> MachineSpeed | None:
    """That of the cells which a case's own ``parts`` lie between; None where there is none."""
    delayed = bool(predicted.cases[case_id].get("rtt_ns"))
    of_it = (one for one in speeds if one.delayed == delayed and len(one.began) == len(parts))
    return next(of_it, None)


def computing_ns(predicted: Results, case_id: str) -> float | None:
    """The predicted median without its round trips, ns; None where they are not known."""
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


def _of_rounds(cells: Sequence[tuple[Floats, Floats]], delayed: bool) -> MachineSpeed:
    """From when each cell's parts began, and what they say. A part counts to the round that it was
    measured in, which most cells' parts of its number are of."""
    rounds = np.median([began for began, _ in cells], axis=0)
    began = np.concatenate([began for began, _ in cells])
    ratios = np.concatenate([by_part for _, by_part in cells])
    nearest = np.abs(began[:, None] - rounds[None, :]).argmin(axis=1)
    held = np.unique(nearest)
    # A round without a part is between its neighbours.
    by_round = np.interp(rounds, rounds[held], [ratios[nearest == k].mean() for k in held])
    return MachineSpeed(tuple(by_round.tolist()), tuple(rounds.tolist()), len(cells), delayed)
