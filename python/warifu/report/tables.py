# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of a report, in the order of its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warifu.compare.comparison import Comparison
from warifu.compare.require import Judged, judge_all, requirements
from warifu.report.accuracy import comparison_table, overview_table
from warifu.report.accuracy_details import (
    conditions_table,
    distance_table,
    null_table,
    phase_table,
)
from warifu.report.figures import count, number
from warifu.report.inputs import inputs_table
from warifu.report.requirements import requirement_table
from warifu.report.summaries import half_table
from warifu.report.table import Column, Table
from warifu.results import Results, ResultsError, halves, interruptions

#: A page with more rows than this is not read; the other formats have them all.
PAGE_ROWS = 400


def report_tables(folder: Path, comparison: Comparison | None) -> list[Table]:
    """Every table of a study's results, for `warifu report --format`.

    Raises ResultsError where there are none.
    """
    predicted, measured = open_halves(folder, comparison)
    if predicted is None and measured is None:
        raise ResultsError(f"{folder}: holds no results yet: run `warifu predict` first")
    tables: list[Table] = []
    if judged := judge_halves(predicted, measured):
        tables.append(requirement_table(judged, None if predicted is None else predicted.manifest))
    tables += [half_table(half) for half in (predicted, measured) if half is not None]
    if comparison is not None:
        tables += [
            overview_table(comparison),
            comparison_table(comparison, worst_first=True),
            null_table(comparison),
            conditions_table(comparison),
            distance_table(comparison),
        ]
        if any(case.phases for case in comparison.cases):
            tables.append(phase_table(comparison))
    if predicted is not None:
        tables.append(inputs_table(predicted.manifest))
    if measured is not None:
        tables.append(link_table(measured))
    tables[0].notes[:0] = interruptions(predicted, measured)
    return tables


def open_halves(
    folder: Path, comparison: Comparison | None
) -> tuple[Results | None, Results | None]:
    """The halves that are reported: beside a prediction only a measurement compared with it."""
    predicted, measured = halves(folder)
    if predicted is not None and comparison is None:
        measured = None
    return (
        None if predicted is None else Results.open(predicted),
        None if measured is None else Results.open(measured),
    )


def judge_halves(predicted: Results | None, measured: Results | None) -> list[Judged]:
    """The study's requirements on every case of both halves.

    They are those of the prediction, and so are the cases: a measurement is made over days, and
    may hold cases that the study no longer has.
    """
    asked = predicted or measured
    if asked is None:
        return []
    wanted = requirements(asked.manifest.get("require") or [])
    judged = judge_all(asked, wanted)
    if predicted is not None and measured is not None:
        judged += judge_all(measured, wanted, set(predicted.cases))
    return judged


def link_table(measured: Results) -> Table:
    """How late the emulated link was in every cell: it judged itself before any result was seen."""
    table = Table(
        "the emulated link's own lateness",
        [
            Column("case", number=False),
            Column("windows"),
            Column("packets"),
            Column("lost"),
            Column("late"),
            Column("worst P50 in us"),
            Column("worst P99 in us"),
            Column("max in us"),
            Column("verdict", number=False),
        ],
    )
    found = measured.manifest.get("link_reports") or {}
    # In the order of the study, not in that in which the cells were finished.
    for case_id in (one for one in measured.cases if one in found):
        reports = found[case_id]
        windows = [one for one in (reports if isinstance(reports, list) else [reports]) if one]
        if windows:
            _link_row(table, measured.label(case_id), case_id, windows)
    rejected = measured.manifest.get("rejections") or []
    table.notes.append(
        f"{len(rejected):,} {'attempt was' if len(rejected) == 1 else 'attempts were'} rejected "
        "before any result was seen, and made again."
        if rejected
        else "No attempt was rejected."
    )
    return table


def _link_row(table: Table, label: str, case_id: str, windows: list[dict[str, Any]]) -> None:
    directions = [one.get(name) or {} for one in windows for name in ("a_to_b", "b_to_a")]
    lateness = [one.get("lateness_us") or {} for one in directions]
    delivered = sum(int(one.get("delivered") or 0) for one in directions)
    lost = sum(int(one.get("dropped_by_loss") or 0) for one in directions)
    late = max((float(one.get("late_fraction") or 0.0) for one in windows), default=0.0)
    worst = {
        key: max((float(one.get(key) or 0.0) for one in lateness), default=0.0)
        for key in ("p50", "p99", "max")
    }
    accepted = all(one.get("accepted") is not False for one in windows)
    share = lost / (lost + delivered) if lost + delivered else 0.0
    table.add(
        [
            label,
            count(len(windows)),
            count(delivered + lost),
            f"{number(share * 100, 2)} %",
            f"{number(late * 100, 3)} %",
            *(number(worst[key], 0) for key in ("p50", "p99", "max")),
            "accepted" if accepted else "rejected",
        ],
        {
            "case_id": case_id,
            "label": label,
            "windows": len(windows),
            "packets": delivered + lost,
            "lost": lost,
            "late_fraction": late,
            **{f"lateness_{key}_us": value for key, value in worst.items()},
            "accepted": accepted,
        },
    )
