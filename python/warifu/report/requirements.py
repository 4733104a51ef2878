# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The table of a study's requirements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warifu.compare.gates import Verdict
from warifu.compare.require import Judged
from warifu.report.figures import count, decimals, ended_only, ms_with, number
from warifu.report.inputs import delays, finest_ns
from warifu.report.table import Column, Table, Value
from warifu.results import PREDICTED, metrics, weakest


def requirement_table(judged: Sequence[Judged], predicted: dict[str, Any] | None = None) -> Table:
    """Each requirement on each half: in how many cases it holds, the worst of them, and the
    weakest evidence that these verdicts rest on.

    Programs get a record for every case. ``predicted`` is the prediction's manifest.
    """
    table = Table(
        "requirements",
        [
            Column("requirement", number=False),
            Column("half", number=False),
            Column("holds in", number=False),
            Column("verdict", number=False),
            Column("nearest to failing", number=False),
            Column("n"),
            Column("value (95 % interval)"),
            Column("rests on", number=False),
        ],
    )
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in judged:
        groups.setdefault((one.requirement.text, one.half), []).append(one)
        table.records.append(_requirement_record(one))
    for (text, half), group in groups.items():
        holding = sum(one.verdict is Verdict.PASS for one in group)
        least = nearest_to_failing(group)
        why = least.remark
        if least.trials_needed:
            why = f"needs at least {count(least.trials_needed)} trials"
        table.cells.append(
            [
                text,
                half,
                f"{holding} of {len(group)} cases",
                _HOLDS[least.verdict] + (f" ({why})" if why else ""),
                least.label,
                count(least.n),
                _requirement_value(least, predicted),
                weakest([one.evidence for one in group]),
            ]
        )
    table.notes += _notes(judged, predicted)
    return table


def nearest_to_failing(group: Sequence[Judged]) -> Judged:
    """The worst verdict, and of those the least margin."""
    return min(group, key=lambda one: (list(Verdict).index(one.verdict), one.margin))


def _notes(judged: Sequence[Judged], predicted: dict[str, Any] | None) -> Sequence[str]:
    """What the verdicts rest on."""
    ours = [one for one in judged if one.half == PREDICTED]
    if not ours:
        return []
    evidence = weakest([one.evidence for one in ours])
    note = (
        f"The predicted verdicts rest on inputs that are {evidence} at the weakest. The interval "
        "is the noise of the simulation alone: another value of such an input may turn a verdict."
    )
    return [note, *(delays(predicted) if predicted else [])]


_HOLDS = {Verdict.PASS: "holds", Verdict.FAIL: "fails", Verdict.UNDECIDED: "undecided"}


def _requirement_value(one: Judged, predicted: dict[str, Any] | None) -> str:
    if math.isnan(one.value):
        return "-"
    hint = ended_only(one.left_out)
    return _with_unit(one, predicted) + (f", {hint}" if hint else "")


def _with_unit(one: Judged, predicted: dict[str, Any] | None) -> str:
    if metrics.is_time(one.requirement.metric):
        finest = finest_ns(predicted, one.case_id) if predicted and one.half == PREDICTED else 0.0
        return f"{ms_with(one.value, one.interval, finest)} ms"
    if metrics.is_failure(one.requirement.metric):
        places = max(0, decimals(one.interval.half_width * 100.0))
        value, low, high = (number(end * 100.0, places) for end in (one.value, *one.interval))
        return f"{value} % ({low} to {high} %)"
    # Of a number of packets the unit is 1, and the metric says what is counted.
    unit = metrics.unit(one.requirement.metric)
    after = "" if unit == "1" else f" {unit}"
    interval = one.interval
    if math.isinf(interval.high):
        return f"{interval.low:g}{after} or more"
    if interval.low == interval.high:
        return f"{one.value:g}{after}"
    places = max(0, decimals(interval.half_width))
    value, first, last = (number(end, places) for end in (one.value, *interval))
    return f"{value}{after} ({first} to {last})"


def _requirement_record(one: Judged) -> dict[str, Value]:
    unit = metrics.unit(one.requirement.metric)
    return {
        "requirement": one.requirement.text,
        "case_id": one.case_id,
        "label": one.label,
        "half": one.half,
        "metric": one.requirement.metric,
        "statistic": one.requirement.statistic,
        "operator": one.requirement.operator,
        "bound": _whole(one.requirement.bound, unit),
        "n": one.n,
        "value": _whole(one.value, unit),
        "low": _whole(one.interval.low, unit),
        "high": _whole(one.interval.high, unit),
        "unit": unit,
        "verdict": _HOLDS[one.verdict],
        "trials_needed": one.trials_needed,
        "remark": one.remark,
        "failed_left_out": one.left_out,
        "evidence": one.evidence,
    }


def _whole(value: float, unit: str) -> float:
    """Nanoseconds are whole: what lies between two is the arithmetic's."""
    return float(round(value)) if unit == "ns" and math.isfinite(value) else value
