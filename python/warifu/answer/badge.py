# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How far the figures are to be believed, in one line."""

from __future__ import annotations

import math
import statistics
from collections import Counter

from warifu.answer.model import Badge, Level
from warifu.compare.comparison import Comparison
from warifu.compare.conditions import CALIBRATED_ON
from warifu.compare.gates import Verdict
from warifu.report.inputs import assumed_figures, named, published_figures
from warifu.results import PREDICTED, Results, weakest

#: Names of inputs that are told; the report has all.
_NAMED = 2
_NOT_COUNTED = "how far assumed values are off is not in the intervals"
_COUNTED = "those of devices are in the ranges by the board, others in none"


def badge(main: Results, comparison: Comparison | None) -> Badge:
    """Validated by a comparison, or what the figures rest on."""
    if comparison is None:
        if main.half == PREDICTED:
            return Badge(f"not measured here; {rests_on(main)}", Level.NONE)
        if (main.path.parent / PREDICTED).is_dir():
            return Badge("measured; `warifu compare` holds it against its prediction", Level.NONE)
        return Badge("measured, and nothing predicted to hold it against", Level.NONE)
    errors = [
        abs(row.relative)
        for case in comparison.cases
        if (row := case.row("p50")) is not None and math.isfinite(row.relative)
    ]
    median = f"median error {statistics.median(errors) * 100:.1f} %" if errors else "no median"
    of = f"{median} over {len(comparison.cases)} {_cells(len(comparison.cases))}"
    judged = [case for case in comparison.cases if case.verdict is not None]
    if not judged:
        why = _why_not(comparison)
        if why:
            return Badge(f"measured, nothing is judged: {why} ({of})", Level.NONE)
        return Badge(f"measured, no gate decides: {of}", Level.NONE)
    counts = {verdict: comparison.count(verdict) for verdict in Verdict}
    words = {Verdict.PASS: "pass", Verdict.UNDECIDED: "undecided", Verdict.FAIL: "fail"}
    shown = ", ".join(f"{counts[one]} {word}" for one, word in words.items() if counts[one])
    if unreplayed := sum(case.replay_missing for case in judged):
        shown += f"; the replay of {unreplayed} is missing, and with it their gates"
    if counts[Verdict.FAIL]:
        return Badge(f"outside its gates in {counts[Verdict.FAIL]}: {of} ({shown})", Level.FAIL)
    if counts[Verdict.UNDECIDED]:
        return Badge(f"validated in part: {of} ({shown})", Level.UNDECIDED)
    return Badge(f"validated: {of} ({shown})", Level.PASS)


def _why_not(comparison: Comparison) -> str:
    """What is in the way of most cells but those that the prediction knows; empty where nothing."""
    whys = Counter(case.not_judged for case in comparison.cases)
    most = (why for why, _ in whys.most_common() if why not in ("", CALIBRATED_ON))
    return next(most, "")


def rests_on(main: Results) -> str:
    """`simulated, rests on 2 assumed values: lte-m jitter, lte-m rtt; ..`: the weakest evidence and
    the inputs that have it. Intervals are of the trials: an assumed value that is wrong is wrong in
    all of them. What a band of a device's figure allows is told by the board."""
    methods = " and ".join(str(one) for one in main.manifest.get("methods") or ["simulated"])
    evidence = weakest([str(one) for one in main.manifest.get("evidence") or []])
    if evidence == "published" and (published := published_figures(main.manifest)):
        return f"{methods}, rests on published values: {named(published, _NAMED)}"
    figures = assumed_figures(main.manifest)
    if evidence != "assumed" or not figures:
        return f"{methods}, rests on {evidence} values"
    counted = _COUNTED if main.has_boards() else _NOT_COUNTED
    values = f"{len(figures)} assumed {'value' if len(figures) == 1 else 'values'}"
    return f"{methods}, rests on {values}: {named(figures, _NAMED)}; {counted}"


def _cells(count: int) -> str:
    return "cell" if count == 1 else "cells"
