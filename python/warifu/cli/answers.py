# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The answer that every output opens with, in each format."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warifu.cli import screen
from warifu.cli.formats import Format

if TYPE_CHECKING:
    from warifu.answer import Answer
    from warifu.compare.comparison import Comparison
    from warifu.compare.require import Judged
    from warifu.report.table import Table, Value
    from warifu.results import Results

#: Cases that a terminal gets; every one is in the other formats and in the report.
TERMINAL_ROWS = 24


@dataclass(frozen=True)
class Answered:
    """An answer with what it was made from."""

    found: Answer
    predicted: Results | None
    measured: Results | None
    comparison: Comparison | None
    judged: list[Judged]

    @property
    def contradicted(self) -> bool:
        """Whether a requirement does not hold: a predicted one not surely, or not judged in a case
        that lacks costs; a measured one surely not.

        A measured half is often too small to be sure of a tail: that alone contradicts nothing.
        """
        from warifu import prediction

        if self.predicted is not None and prediction.unjudged(self.predicted.manifest):
            return True
        return any(
            str(one.verdict) == "fail" or (one.half == "predicted" and str(one.verdict) != "pass")
            for one in self.judged
        )


def of_halves(
    predicted: Path | None,
    measured: Path | None,
    comparison: Comparison | None,
    baseline: str | None,
) -> Answered:
    """Answers from the halves that are there. Raises ResultsError."""
    from warifu.answer import answer
    from warifu.report.tables import judge_halves
    from warifu.results import Results

    ours, theirs = (None if one is None else Results.open(one) for one in (predicted, measured))
    judged = judge_halves(ours, theirs)
    found = answer(ours, theirs, comparison, judged, baseline)
    return Answered(found, ours, theirs, comparison, judged)


def show(answered: Answered, form: Format, more: Sequence[Table] = ()) -> None:
    """The answer with one table; programs get it as data, with ``more`` tables in JSON alone."""
    warn(answered, form)
    if form is Format.TABLE:
        from warifu.answer.text import below, opening

        found, width = answered.found, screen.width(sys.stdout)
        text = f"{opening(found, width)}\n{below(found, width, TERMINAL_ROWS)}"
        sys.stdout.write(screen.coloured(text, sys.stdout))
        sys.stdout.flush()
        return
    if form is Format.CSV:
        screen.show([cases(answered)], form)
    elif form is Format.JSON:
        screen.show(
            [cases(answered), *requirements(answered), *more], form, answer=summary(answered)
        )
    else:
        if form is Format.MD:
            sys.stdout.write(as_markdown(answered.found))
        screen.show([answered.found.table(), *requirements(answered), *more], form)


def warn(answered: Answered, form: Format) -> None:
    """Warnings go to the people beside the output, unless they are in it."""
    if form not in {Format.MD, Format.JSON}:
        for sentence in answered.found.warnings:
            screen.warn(sentence)


def as_markdown(found: Answer) -> str:
    """The answer as a paragraph and a list."""
    from warifu.report.table import markdown

    lines = [f"{found.study}: {found.question}", ""]
    every = [*found.warnings, *found.sentences, *found.not_included, f"{found.badge.text}."]
    return (
        "".join(f"{markdown(one)}\n" for one in lines[:1])
        + "\n"
        + "".join(f"- {markdown(one)}\n" for one in every)
        + "\n"
    )


def summary(answered: Answered) -> Mapping[str, object]:
    """The answer for programs (docs/reference/output.schema.json)."""
    found = answered.found
    return {
        "study": found.study,
        "half": found.half,
        "question": found.question,
        "headline": found.headline,
        "sentences": found.sentences,
        "not_included": found.not_included,
        "warnings": found.warnings,
        "badge": {"text": found.badge.text, "level": str(found.badge.level)},
        "baseline": found.baseline,
    }


def requirements(answered: Answered) -> list[Table]:
    """The table of requirements, where there are any."""
    from warifu.report.requirements import requirement_table

    if not answered.judged:
        return []
    manifest = None if answered.predicted is None else answered.predicted.manifest
    table = requirement_table(answered.judged, manifest)
    table.name = "requirements"
    return [table]


def cases(answered: Answered) -> Table:
    """One row a case: every setting, every figure of both halves, and all verdicts."""
    from warifu.answer.records import cases

    halves = [one for one in (answered.predicted, answered.measured) if one is not None]
    return cases(answered.found, halves, answered.judged)


def with_settings(table: Table, answered: Answered) -> Table:
    """A table of cases whose records have the settings of their case, and what is required."""
    settings: dict[str, dict[str, Value]] = {
        row.case_id: {**row.columns, "deadline": row.deadline} for row in answered.found.rows
    }
    table.records = [{**row, **settings.get(str(row.get("case_id")), {})} for row in table.records]
    return table


def show_compared(answered: Answered, worst_first: bool) -> None:
    """For people: the answer, then one row a case with its errors; the worst first if asked."""
    from warifu.answer.text import opening, paragraph
    from warifu.cli.ending import failures

    warn(answered, Format.TABLE)
    width = screen.width(sys.stdout)
    text = opening(answered.found, width) + "\n"
    table = errors(answered, worst_first)
    sys.stdout.write(screen.coloured(text, sys.stdout))
    screen.show([table], Format.TABLE, width=width)
    lines = [
        answered.found.badge.text,
        *(f"failed: {one}" for one in failures(answered.comparison)),
    ]
    width = min(width, screen.WIDTH)
    sys.stdout.write("\n" + "".join(paragraph(one, width) for one in lines))
    sys.stdout.flush()


def errors(answered: Answered, worst_first: bool = False) -> Table:
    """Every judged case: what it takes, predicted and measured, and how far these are apart."""
    from warifu.answer.words import key_of
    from warifu.report.accuracy import badness
    from warifu.report.figures import ms, percent
    from warifu.report.table import Column, Table

    comparison = answered.comparison
    rows = {row.case_id: row for row in answered.found.rows}
    paths = list(next(iter(rows.values())).settings)
    columns = [Column(key_of(path).replace("_", " "), number=False) for path in paths]
    columns = columns or [Column("case", number=False)]
    columns += [Column("predicted"), Column("measured"), Column("error"), Column("P99 error")]
    columns += [Column("verdict", number=False)]
    table = Table(f"{answered.found.study}: predicted and measured P50 in ms", columns)
    every = list(comparison.cases if comparison is not None else [])
    if worst_first:
        every.sort(key=lambda case: max(badness(case, row) for row in case.rows), reverse=True)
    for case in every[:TERMINAL_ROWS]:
        row = rows[case.case_id]
        cells = list(row.settings.values()) or [row.label or "the only case"]
        median, tail = case.row("p50"), case.row("p99")
        cells += [
            "-" if median is None else ms(median.predicted, row.p50_interval, row.finest),
            "-" if median is None else ms(median.measured, row.p50_interval, row.finest),
        ]
        for one in (median, tail):
            half = (
                0.0 if one is None or not one.measured else one.interval.half_width / one.measured
            )
            cells.append("-" if one is None else percent(one.relative, half))
        cells.append(str(case.verdict or "not judged"))
        table.add(cells, {"case_id": case.case_id})
    if len(every) > TERMINAL_ROWS:
        table.notes.append(
            f"{TERMINAL_ROWS} of {len(every):,} cases; --format csv has every figure of all."
        )
    return table
