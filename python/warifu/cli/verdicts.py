# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Comparing, judging requirements, reporting, and all of it in one go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warifu import lock
from warifu.cli import halves, screen
from warifu.cli.errors import FAILED, OK
from warifu.cli.formats import Format

if TYPE_CHECKING:
    from warifu.compare.join import Comparison
    from warifu.compare.require import Judged
    from warifu.lab.errors import ResultsMixed
    from warifu.study import Loaded


def results_folder(given: Path) -> Path:
    """A folder of results as given, or that of a study's file."""
    if given.is_dir():
        return given
    if given.suffix != ".toml":
        from warifu.results import ResultsError

        what = "is a file, but not a study" if given.exists() else "does not exist"
        raise ResultsError(f"{given}: {what}: name a folder of results or a study file")
    from warifu import study

    return halves.RESULTS / study.load(given).study.name


def compare(given: Path) -> Comparison:
    """Compares the halves, keeps the result beside them, and returns it."""
    from warifu.compare.join import compare_folder
    from warifu.compare.store import save

    folder = results_folder(given)
    with screen.progress("comparing") as report:
        comparison = compare_folder(folder, report)
    save(comparison, study_folder(folder))
    return comparison


def nothing_succeeded(half: Path) -> bool:
    """Says so if no connection of a half got its response."""
    from warifu.results import each_part, metrics

    # Ends at the first that did: a sweep's other files are not read.
    if any(not part.is_empty() for part in each_part(half, metrics.all_wholes())):
        return False
    screen.warn(
        f"{half}: no connection succeeded in any case, so there is no time to tell: look at the "
        "loss, the RTT and the rate of the link, and at the limit of a connection"
    )
    return True


def study_folder(folder: Path) -> Path:
    """The folder above both halves."""
    return folder.parent if (folder / "manifest.json").is_file() else folder


def show_comparison(
    comparison: Comparison, form: Format, every: bool = False, worst_first: bool = False
) -> None:
    """Prints the comparison: an overview and the judged figures; programs get every figure."""
    from warifu.report import summaries

    for sentence in comparison.interrupted:
        screen.warn(sentence)
    if form is Format.CSV:
        # One table, so that it can be read as one; it has no room for warnings.
        for warning in comparison.warnings:
            screen.warn(warning)
        screen.show([summaries.comparison_table(comparison, worst_first)], form)
        return
    detail = summaries.comparison_table(comparison, worst_first, judged_only=not every)
    tables = [summaries.overview_table(comparison), detail]
    if every or form is Format.JSON:
        tables.append(summaries.distance_table(comparison))
    screen.show(tables, form)


def report(given: Path, out: Path | None, form: Format | None) -> None:
    """Writes the page, or prints its tables."""
    from warifu.results import halves as both

    folder = results_folder(given)
    if (folder / "manifest.json").is_file():
        # Refuses a folder that is no half before the one above it is looked at.
        both(folder)
    folder = study_folder(folder)
    comparison = _comparison(folder)
    _warn_of_missing(folder, comparison)
    if form is None:
        _write_page(folder, comparison, out)
        return
    from warifu.report.tables import report_tables

    screen.show(report_tables(folder, comparison), form)


def _warn_of_missing(folder: Path, comparison: Comparison | None) -> None:
    """Says which half is missing or was cut short: its report looks like any other."""
    from warifu.report.tables import open_halves
    from warifu.results import interruptions

    predicted, measured = open_halves(folder, comparison)
    if predicted is None and measured is not None:
        screen.warn(
            f"{folder}: has no predicted half, so the measured one is reported alone: run "
            "`warifu predict` to see how close a prediction comes"
        )
    for sentence in interruptions(predicted, measured):
        screen.warn(sentence)


def _comparison(folder: Path) -> Comparison | None:
    """The comparison of the halves that are there, if they can be compared."""
    from warifu.compare.join import CompareError
    from warifu.compare.store import current
    from warifu.results import ResultsDamaged, ResultsError, read_manifest
    from warifu.results import halves as both

    try:
        comparison = current(folder)
        if comparison is None and None not in both(folder):
            comparison = compare(folder)
    except ResultsDamaged:
        raise
    except (CompareError, ResultsError) as error:
        # A measurement of what the study was before must not cost the report of what it is now;
        # but it is of no use if the prediction cannot be read either.
        predicted, _ = both(folder)
        if predicted is not None:
            read_manifest(predicted)
        screen.warn(f"{error}; until then only the prediction is reported")
        return None
    return comparison


def _write_page(folder: Path, comparison: Comparison | None, out: Path | None = None) -> None:
    from warifu import tools
    from warifu.report.page import write_page

    path = write_page(folder, comparison, out or folder / "report.html", tools.program())
    screen.say(f"report: {path}")


def run(
    loaded: Loaded,
    out: Path | None,
    threads: int | None,
    trials: int | None,
    measured: bool,
    form: Format,
) -> int:
    """Both halves, comparison, requirements and report, while the folder is locked."""
    folder = halves.folder_of(loaded, out)
    with lock.held(folder, "run"):
        return _run(loaded, folder, threads, trials, measured, form)


def _run(
    loaded: Loaded,
    folder: Path,
    threads: int | None,
    trials: int | None,
    measured: bool,
    form: Format,
) -> int:
    began = time.monotonic()
    comparison = None
    halves.predict(loaded, folder, threads)
    why_not = _measure(loaded, folder, trials) if measured else "it was not asked for"
    if why_not:
        halves.show(folder / "predicted", form)
        screen.warn(
            f"nothing was measured, so nothing here says how close the prediction is: {why_not}"
        )
        if measured:
            screen.say("`warifu doctor` lists what is missing, each with a fix")
    else:
        comparison = compare(folder)
        show_comparison(comparison, form)
    judged = _judge(folder, with_measured=not why_not)
    _show_requirements(folder, judged, form)
    _write_page(folder, comparison)
    screen.say(f"results: {folder} ({time.monotonic() - began:.0f} s)")
    silent = nothing_succeeded(folder / "predicted")
    return FAILED if silent or contradicted(judged) else OK


def contradicted(judged: Sequence[Judged]) -> bool:
    """Whether a requirement does not hold: a predicted one not surely, a measured one surely not.

    A measured half is often too small to be sure of a tail: that alone contradicts nothing.
    """
    return any(
        str(one.verdict) == "fail" or (one.half == "predicted" and str(one.verdict) != "pass")
        for one in judged
    )


def _measure(loaded: Loaded, folder: Path, trials: int | None) -> str:
    """Measures; why nothing could be, or an empty text."""
    from warifu.lab.errors import LabUnavailable, ResultsMixed
    from warifu.tools import ToolMissing

    try:
        try:
            _, summary = halves.measure(loaded, folder, trials)
        except ResultsMixed as mixed:
            with _set_aside(folder, mixed):
                _, summary = halves.measure(loaded, folder, trials)
    except (LabUnavailable, ToolMissing) as error:
        return str(error)
    if not summary.measured:
        reasons = summary.given_up | summary.skipped
        return next(iter(reasons.values()), "no case of the study can be measured here")
    return ""


@contextlib.contextmanager
def _set_aside(folder: Path, mixed: ResultsMixed) -> Iterator[None]:
    """Keeps the measured half elsewhere while another is made; back again if none came of it."""
    measured = folder / "measured"
    aside = halves.set_aside(folder, mixed.run_id)
    screen.say(
        f"{measured} holds results with {mixed.difference}: they are moved to {aside}, and "
        "everything is measured again"
    )
    try:
        yield
    finally:
        if not measured.exists():
            aside.rename(measured)
            screen.say(f"{aside} is moved back to {measured}")


def _judge(folder: Path, with_measured: bool) -> list[Judged]:
    from warifu.report.tables import judge_halves
    from warifu.results import Results

    measured = Results.open(folder / "measured") if with_measured else None
    return judge_halves(Results.open(folder / "predicted"), measured)


def _show_requirements(folder: Path, judged: list[Judged], form: Format) -> None:
    if not judged:
        return
    from warifu.report.requirements import requirement_table
    from warifu.results import read_manifest

    table = requirement_table(judged, read_manifest(folder / "predicted"))
    if form in {Format.CSV, Format.JSON}:
        # Standard output holds the comparison, and a file of two tables cannot be read as one.
        for row in table.cells:
            screen.say("requirement: " + ", ".join(row[:5]))
    else:
        screen.show([table], form)
