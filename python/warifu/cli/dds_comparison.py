# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of `warifu dds compare`: the verdict, then its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warifu.report.table import Column, Table

if TYPE_CHECKING:
    from warifu.compare.dds import DdsComparison, Estimate


def tables(found: DdsComparison) -> list[Table]:
    """The answer, and each cell with its error, the farthest first."""
    return [_answer(found), _cells(found)]


def _answer(found: DdsComparison) -> Table:
    from warifu.compare.dds import BOUND, RULE

    nearer, of = found.nearer
    verdict = found.verdict.value.upper()
    title = (
        f"{verdict}: one way in {len(found.cells)} secured cells is predicted within "
        f"{_percent(found.error.value)} (median; 95 % interval {_interval(found.error)}), "
        f"{_percent(BOUND)} are allowed."
    )
    notes = [RULE]
    if found.why_undecided:
        notes.insert(0, f"Undecided: {found.why_undecided}.")
    if found.null is not None:
        notes.insert(0, f"The prediction is nearer than the null model in {nearer} of {of} cells.")
    if found.only_predicted:
        notes.append(f"Predicted and not measured: {len(found.only_predicted)} cases.")
    columns = [Column("model", number=False), Column("median error"), Column("95 % interval")]
    table = Table(title, columns, notes=notes)
    for name, estimate in (("prediction", found.error), ("null model", found.null)):
        if estimate is None:
            table.add([name, "-", "no case without security was measured"], {"model": name})
            continue
        table.add(
            [name, _percent(estimate.value), _interval(estimate)],
            {
                "model": name,
                "verdict": found.verdict.value if name == "prediction" else None,
                "median_error": estimate.value,
                "low": estimate.interval.low,
                "high": estimate.interval.high,
                "bound": BOUND,
                "cells": len(found.cells),
                "nearer_than_null": nearer,
                "predicted_run": found.predicted_run,
                "measured_run": found.measured_run,
            },
        )
    return table


def _cells(found: DdsComparison) -> Table:
    columns = [
        Column("case", number=False, wrap=50),
        Column("predicted, us"),
        Column("measured, us"),
        Column("error"),
        Column("null model"),
        Column("samples"),
    ]
    table = Table("One way, medians", columns)
    for cell in sorted(found.cells, key=lambda cell: -abs(cell.error)):
        null = cell.null_error
        table.add(
            [
                cell.label,
                _micros(cell.predicted),
                _micros(cell.measured),
                _signed(cell.error),
                "-" if null is None else _signed(null),
                f"{cell.samples:,}",
            ],
            {
                "case_id": cell.case_id,
                "case": cell.label,
                "predicted_ns": cell.predicted,
                "measured_ns": cell.measured,
                "error": cell.error,
                "null_ns": cell.null,
                "null_error": null,
                "samples": cell.samples,
            },
        )
    return table


def _interval(of: Estimate) -> str:
    return f"{_percent(of.interval.low)} to {_percent(of.interval.high)}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _signed(share: float) -> str:
    return f"{100.0 * share:+.1f} %"


def _micros(ns: float) -> str:
    return f"{ns / 1e3:,.0f}"
