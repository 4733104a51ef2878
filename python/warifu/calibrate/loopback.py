# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The runs that costs are found from; they are never judged."""

from __future__ import annotations

import itertools
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warifu.calibrate.errors import CalibrateError
from warifu.case import Case
from warifu.lab import interruption, quiet
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, Settings
from warifu.lab.errors import RunRejected
from warifu.lab.quiet import Shares
from warifu.lab.rates import CALM_RATE
from warifu.lab.store import Part

if TYPE_CHECKING:
    from warifu._core import Study

MAX_REJECTIONS = 64
"""Runs that may be rejected and begun again before the calibration is given up."""

CONTENDED_MAX = 0.5
"""Of all runs, how many may be made again because other work took the processors meanwhile. A
machine that is never quiet is calibrated as it is, and the calibration says so."""

PREDICT_TRIALS = "predict_trials = 300\n"

_STUDY = """\
name = "calibration"
seed = 1
trials = {trials}
{predict_trials}device = "this-host"
server = "this-host"
[link]
profile = "loopback"
{settings}[vary]
"link.rtt" = [{rtts}]
{varied}"""

RTTS = ("0 ms", "20 ms")


def study_text(trials: int, settings: str, varied: str = "", rtts: Sequence[str] = RTTS) -> str:
    """A calibration study: `settings` are its sections of a protocol, `varied` lines of `[vary]`.

    At no delay the parties wait for each other for less than a millisecond and work with warm
    caches; at 20 ms they sleep between flights as at any longer delay.
    """
    return _STUDY.format(
        trials=trials,
        predict_trials=PREDICT_TRIALS,
        settings=settings,
        varied=varied,
        rtts=listed(rtts),
    )


def listed(rtts: Sequence[str]) -> str:
    """As a study lists them."""
    return ", ".join(f'"{rtt}"' for rtt in rtts)


@dataclass(frozen=True)
class Loopback:
    """Measured times, ns, by case id and metric."""

    times_ns: dict[tuple[str, str], NDArray[np.float64]]
    rejections: int
    shares: Sequence[Shares] = ()
    """What others took of the processors during each run."""
    records: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """What the lab says of each run, by case id."""
    cells: Sequence[Cell] = ()
    """The cases that were run."""
    parts_ns: Mapping[tuple[str, str], Sequence[NDArray[np.float64]]] = field(default_factory=dict)
    """`times_ns` by run."""

    def medians_ns(self) -> dict[tuple[str, str], float]:
        """The median of each."""
        return {key: float(np.median(values)) for key, values in self.times_ns.items()}

    def errors_ns(self, floor_ns: float = 20_000.0) -> dict[tuple[str, str], float]:
        """Standard errors of the medians, and no less than `floor_ns`: from the quartiles as for a
        normal law, and from what moves between two runs of the same thing, which is that of a
        metric in all of its cases together."""
        moves: dict[str, list[float]] = {}
        for (_, metric), parts in self.parts_ns.items():
            if len(parts) > 1:
                medians = [float(np.median(part)) for part in parts]
                moves.setdefault(metric, []).append(float(np.var(medians, ddof=1)))
        found = {}
        for key, values in self.times_ns.items():
            low, high = np.quantile(values, (0.25, 0.75))
            error = 1.2533 * (high - low) / 1.349 / np.sqrt(len(values))
            between = float(np.mean(moves.get(key[1], [0.0])))
            drift = np.sqrt(between / max(1, len(self.parts_ns.get(key, ()))))
            found[key] = float(max(np.hypot(error, drift), floor_ns))
        return found


def run(
    study: Study,
    trials: int,
    progress: Callable[[str], None],
    columns: Mapping[str, str],
    rounds: int,
) -> Loopback:
    """Runs a calibration study's cases, each in so many rounds; `columns` names the clients'
    columns that are read.

    Raises LabUnavailable or LabError as the lab does.
    """
    return run_all([study], trials, progress, columns, rounds)


def run_all(
    studies: Sequence[Study],
    trials: int,
    progress: Callable[[str], None],
    columns: Mapping[str, str],
    rounds: int,
    wanted: Callable[[Case], bool] = lambda _: True,
) -> Loopback:
    """The same of several studies, whose `wanted` cases are run in turn.

    Raises LabUnavailable or LabError as the lab does.
    """
    times: dict[tuple[str, str], NDArray[np.float64]] = {}
    all_cases = [Cell.of(view) for study in studies for view in study.cases]
    cases = [cell for cell in all_cases if wanted(cell.case)]
    parts: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    records: dict[str, list[Mapping[str, Any]]] = {}
    # Round robin, so that drift hits all alike; what is rejected comes again at the end.
    to_do = deque(itertools.product(range(rounds), cases))
    runs, rejections, contended = len(to_do), 0, 0
    shares: list[Shares] = []
    with Bench(Settings(rate_per_second=CALM_RATE)) as bench:
        while to_do:
            turn, case = to_do.popleft()
            number = runs - len(to_do)
            progress(f"loopback run {number} of {runs}: {case.label}")
            interruption.check()
            try:
                found, record = _run(bench, case, trials // rounds + (turn < trials % rounds))
            except RunRejected as rejection:
                rejections += 1
                if rejections == MAX_REJECTIONS:
                    raise CalibrateError(
                        f"{rejections} runs were rejected, the last of {case.label} ({rejection}); "
                        f"{rejection.advice('calibrate again')}"
                    ) from rejection
                to_do.append((turn, case))
                continue
            share = Shares(**record["processor_shares"])
            if share.taken > quiet.OTHERS_MAX and contended < CONTENDED_MAX * runs:
                contended += 1
                progress(f"made again: other work took {share.taken:.0%} of the processors")
                to_do.append((turn, case))
                continue
            shares.append(share)
            records.setdefault(case.case_id, []).append(record)
            for metric, name in columns.items():
                new = np.array(found[name], dtype=np.float64)
                # Of what one end alone has seen there is none.
                new = new[~np.isnan(new)]
                earlier = times.get((case.case_id, metric), np.empty(0))
                times[case.case_id, metric] = np.concatenate((earlier, new))
                parts.setdefault((case.case_id, metric), []).append(new)
    return Loopback(times, rejections + contended, shares, records, cases, parts)


def _run(bench: Bench, case: Cell, trials: int) -> tuple[dict[str, list[Any]], Mapping[str, Any]]:
    part = Part(case.case_id, 0, trials, secrets.randbits(63))
    result = bench.run(case, part, lambda: False)
    if result is None or any(result.trials.columns["failed"]):
        raise CalibrateError(f"{case.label}: connections failed without loss")
    return result.trials.columns, result.record
