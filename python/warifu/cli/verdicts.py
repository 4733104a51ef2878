# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Comparing, judging requirements, reporting, and all of it in one go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from warifu import lock
from warifu.cli import answers, ending, halves, screen
from warifu.cli.errors import FAILED, OK
from warifu.cli.formats import Format

if TYPE_CHECKING:
    from warifu.cli.ending import Shown
    from warifu.compare.comparison import Comparison
    from warifu.lab.errors import ResultsMixed
    from warifu.study import Loaded


def results_folder(given: Path) -> Path:
    """A folder of results as given, or that of a study's file, whatever machine was predicted."""
    if given.is_dir():
        return given
    if given.suffix != ".toml":
        from warifu.results import ResultsError

        what = "is a file, but not a study" if given.exists() else "does not exist"
        raise ResultsError(f"{given}: {what}: name a folder of results or a study file")
    from warifu import study

    folder = halves.RESULTS / study.name_in(study.read_study(given))
    if folder != halves.RESULTS and folder.is_dir():
        return folder
    # A mistake in the study says more than that there are no results.
    return halves.RESULTS / study.load(given, stand_in=True).study.name


def compare(given: Path) -> Comparison:
    """Compares the halves, keeps the result beside them, and returns it."""
    from warifu.compare.join import compare_folder
    from warifu.compare.store import save

    folder = results_folder(given)
    replayed = _replay(study_folder(folder))
    with screen.progress("comparing") as report:
        comparison = compare_folder(folder, report, replayed=replayed)
    save(comparison, study_folder(folder))
    return comparison


def _replay(folder: Path) -> bool:
    """Replays what was measured where its packets were logged and it was not replayed yet.

    False where it cannot be replayed now, and an older `replay.json` is of no use.

    Raises ReplayRefused for a log or a trace that is not of what was measured.
    """
    from warifu import replay
    from warifu.results import Results, ResultsError
    from warifu.results import halves as both
    from warifu.results.packets import refuse_other_packets

    try:
        predicted, measured = both(folder)
        if predicted is None or measured is None:
            return True
        Results.open(predicted)
        results = Results.open(measured)
    except ResultsError:
        # Comparing says what is wrong with it.
        return True
    # Also where nothing is to be replayed: what was is of these.
    refuse_other_packets(results.path, results.manifest)
    if replay.is_current(folder):
        return True
    try:
        with screen.progress("replaying") as report:
            replay.write(folder, report)
    except replay.PredictorChanged as changed:
        # An older replay may be of other runs, or lack what was measured since.
        screen.warn(f"{changed}; until then nothing is replayed")
        return False
    return True


def compare_given(given: Path) -> tuple[Path, Comparison]:
    """The folder above both halves, and their comparison."""
    folder = results_folder(given)
    return study_folder(folder), compare(folder)


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
    folder: Path,
    comparison: Comparison,
    form: Format,
    every: bool = False,
    worst_first: bool = False,
    baseline: str | None = None,
) -> None:
    """The answer, and what of the prediction is outside its gates; ``every`` adds all figures."""
    from warifu.report import accuracy, accuracy_details

    if not comparison.registered:
        screen.warn(f"{accuracy.NOT_REGISTERED} (`warifu predict`, then `warifu measure`)")
    answered = answers.of_halves(folder / "predicted", folder / "measured", comparison, baseline)
    detail = accuracy.comparison_table(comparison, worst_first, judged_only=not every)
    detail.name = "comparison"
    if form is Format.CSV:
        # One table, so that it can be read as one; it has no room for warnings.
        answers.warn(answered, form)
        whole = accuracy.comparison_table(comparison, worst_first)
        screen.show([answers.with_settings(whole, answered)], form)
        return
    overview, distances = (
        accuracy.overview_table(comparison),
        accuracy_details.distance_table(comparison),
    )
    overview.name, distances.name = "overview", "distances"
    # The answer says these, and what both halves warn of as the prediction's.
    said = {*answered.found.warnings, *accuracy.measurement_warnings(comparison.warnings)}
    overview.notes = [one for one in overview.notes if one not in said]
    if form is Format.TABLE:
        answers.show_compared(answered, worst_first)
        if every:
            nulls, how = (
                accuracy_details.null_table(comparison),
                accuracy_details.conditions_table(comparison),
            )
            screen.show([detail, nulls, how, distances], form, width=screen.WIDTH)
        return
    nulls, how = (
        accuracy_details.null_table(comparison),
        accuracy_details.conditions_table(comparison),
    )
    nulls.name, how.name = "null_models", "conditions"
    tables = [overview, answers.with_settings(detail, answered), nulls, how]
    if every or form is Format.JSON:
        tables.append(distances)
    answers.show(answered, form, tables)


def report(given: Path, out: Path | None, form: Format | None, baseline: str | None = None) -> None:
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
        screen.say(f"report: {_page(folder, comparison, out, baseline)}")
        return
    from warifu.report.tables import report_tables

    tables = report_tables(folder, comparison)
    predicted, measured = _opened(folder, comparison)
    answered = answers.of_halves(predicted, measured, comparison, baseline)
    if form is Format.CSV:
        screen.show([answers.cases(answered)], form)
        screen.say("the other tables of the report are in --format json, md and latex")
        return
    screen.show(tables, form, answer=answers.summary(answered), width=screen.WIDTH)


def _opened(folder: Path, comparison: Comparison | None) -> tuple[Path | None, Path | None]:
    """The halves that are reported (warifu.report.tables.open_halves)."""
    from warifu.results import halves as both

    predicted, measured = both(folder)
    return predicted, measured if predicted is None or comparison is not None else None


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
    from warifu.compare.comparison import CompareError
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


def _page(
    folder: Path,
    comparison: Comparison | None,
    out: Path | None = None,
    baseline: str | None = None,
) -> Path:
    from warifu import tools
    from warifu.report.page import write_page

    page = out or folder / "report.html"
    return write_page(folder, comparison, page, tools.program(), baseline)


def run(
    loaded: Loaded,
    out: Path | None,
    threads: int | None,
    trials: int | None,
    measured: bool,
    options: Shown,
) -> int:
    """Both halves, comparison, requirements and report, while the folder is locked."""
    folder = halves.folder_of(loaded, out)
    with lock.held(folder, "run"):
        return _run(loaded, folder, threads, trials, measured, options)


def _run(
    loaded: Loaded,
    folder: Path,
    threads: int | None,
    trials: int | None,
    measured: bool,
    options: Shown,
) -> int:
    began = time.monotonic()
    halves.predict(loaded, folder, threads)
    why_not = _why_not(loaded, measured) or _measure(loaded, folder, trials)
    comparison = None if why_not else compare(folder)
    answered = answers.of_halves(
        folder / "predicted", None if why_not else folder / "measured", comparison, options.baseline
    )
    page = _page(folder, comparison)
    ending.show(
        answered,
        options,
        ending.Ending(
            page, why_not, measured, folder, time.monotonic() - began, bool(loaded.stands_in)
        ),
    )
    silent = nothing_succeeded(folder / "predicted")
    return FAILED if silent or answered.contradicted else OK


def _why_not(loaded: Loaded, measured: bool) -> str:
    """Why nothing is to be measured; empty where it may be."""
    if not measured:
        return "it was not asked for"
    if loaded.stands_in:
        return "another machine was predicted than this one, which is not calibrated for the study"
    return ""


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
