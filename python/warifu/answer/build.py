# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Putting an answer together."""

from __future__ import annotations

from collections.abc import Sequence

from warifu.answer import amounts, deadlines, only_case, question, sentences
from warifu.answer.axes import Grid, grid_of
from warifu.answer.badge import badge
from warifu.answer.model import Answer, Row
from warifu.answer.samples import Samples
from warifu.compare import stats
from warifu.compare.comparison import Comparison
from warifu.compare.require import Judged
from warifu.report.accuracy import measurement_warnings
from warifu.results import PREDICTED, Results, ResultsError, interruptions

#: So many reasons for leaving cases out are told.
_TOLD = 3
#: What a range by the board is.
_OF_BOARDS = (
    f"{amounts.BY_BOARD.capitalize()}: on 95 % of the boards that the bands of assumed figures "
    "allow. P99 is of all boards together. Timing the board would narrow both."
)


def answer(
    predicted: Results | None,
    measured: Results | None,
    comparison: Comparison | None,
    judged: Sequence[Judged],
    baseline: str | None = None,
) -> Answer:
    """What a study asked, answered from its results.

    ``judged`` are its requirements on its cases (`warifu.report.tables.judge_halves`).
    ``baseline`` is a case's id, its number from 1, its label or a part of it that no other has;
    without one the first case is. Raises ResultsError for one that is none.
    """
    main = predicted or measured
    if main is None:
        raise ResultsError("there are no results to answer from: run `warifu predict` first")
    grid = grid_of(main)
    reference = _baseline(main, grid, baseline)
    samples = Samples(main)
    if len(main.cases) == 1:
        found = only_case.sentences(samples, reference)
        found += [one for one in [sentences.last_byte(samples, reference)] if one]
        headline = found[0]
    else:
        found = sentences.of_axes(samples, grid, reference)
        headline = sentences.headline(samples, grid, reference)
    # What was asked for by name comes first.
    labels = {case_id: main.label(case_id) for case_id in main.cases}
    found = deadlines.sentences(judged, _without_costs(main), labels) + found
    rows = _rows(samples, grid, reference, comparison, deadlines.of_cases(judged))
    links = {str(one) for settings in main.cases.values() if (one := settings.get("link"))}
    return Answer(
        study=main.study,
        half=main.half,
        question=question.question(main, grid),
        sentences=found,
        headline=headline,
        not_included=[
            *question.not_included(main, links),
            *([_OF_BOARDS] if _tells_boards(found, rows) else []),
            *question.long_payloads(main),
            *_left_out(main),
        ],
        badge=badge(main, comparison),
        baseline=reference,
        rows=rows,
        requirements=list(dict.fromkeys(one.requirement.text for one in judged)),
        warnings=[*interruptions(predicted, measured), *_warnings(main, comparison)],
        stands_in=question.stands_in(main.manifest)[1],
    )


def _tells_boards(found: Sequence[str], rows: Sequence[Row]) -> bool:
    """Whether sentences or the report's table have a range by the board."""
    ranges = [(row.boards, row.p50) for row in rows]
    ranges += [(row.delta.boards, row.delta.value) for row in rows]
    return any(amounts.BY_BOARD in one for one in found) or any(
        ends is not None and ends.high - ends.low >= amounts.BY_BOARD_FROM * abs(value)
        for ends, value in ranges
    )


def _without_costs(main: Results) -> list[str]:
    """The labels of the cases that could not be predicted for lack of costs."""
    return [str(label) for label in main.manifest.get("without_costs") or []]


def _left_out(main: Results) -> list[str]:
    """Cases of the study that could not be predicted or measured here, with the first reasons."""
    skipped = main.manifest.get("skipped") or {}
    done = "predicted" if main.half == PREDICTED else "measured"
    by_reason: dict[str, list[str]] = {}
    for label, why in skipped.items():
        by_reason.setdefault(str(why), []).append(str(label) or "the only case")
    told = []
    for why, labels in by_reason.items():
        which = labels[0] if len(labels) == 1 else f"{len(labels)} cases, such as {labels[0]}"
        told.append(f"Not {done}: {which}: {why}.")
    if len(told) > _TOLD:
        told = [*told[:_TOLD], f"Not {done}: others, for {len(told) - _TOLD} more reasons."]
    return told


def _warnings(main: Results, comparison: Comparison | None) -> list[str]:
    """What the prediction rests on, and what the measurement said of itself: a verdict on
    contended trials says little. What both say is told once."""
    own = [str(one) for one in main.manifest.get("warnings") or []]
    if main.lacks_boards:
        own.append(
            "The prediction was cut short before boards were compared, so that assumed figures may "
            "turn what is called certain; what is required of times is undecided."
        )
    if main.half != PREDICTED and comparison is None:
        return measurement_warnings(own)
    said = [] if comparison is None else comparison.warnings
    ours = own if main.half == PREDICTED else []
    return [*ours, *measurement_warnings(one for one in said if one not in ours)]


def _baseline(main: Results, grid: Grid, wanted: str | None) -> str:
    cases = list(main.cases)
    if wanted is None:
        return next(iter(grid.cases.values()))
    if wanted in main.cases:
        return wanted
    number = int(wanted) if wanted.isdecimal() and len(wanted) < 10 else None
    if number is not None and 1 <= number <= len(cases):
        return cases[number - 1]
    exact = [one for one in cases if main.label(one) == wanted]
    parts = [] if number is not None else [one for one in cases if wanted in main.label(one)]
    found = exact or (parts if wanted else [])
    if len(found) == 1:
        return found[0]
    many = f"names {len(found)} cases" if found else "names no case"
    some = "; ".join(f"{at} {main.label(one)}" for at, one in enumerate(cases[:3], start=1))
    raise ResultsError(
        f"--baseline {wanted}: {many}: give a number from 1 to {len(cases)} or a label, such as "
        f"{some}"
    )


def _rows(
    samples: Samples,
    grid: Grid,
    reference: str,
    comparison: Comparison | None,
    met: dict[str, str],
) -> list[Row]:
    main = samples.results
    verdicts = {
        case.case_id: str(case.verdict) if case.verdict else None
        for case in (comparison.cases if comparison is not None else ())
    }
    samples.of(reference)
    found: dict[str, Row] = {}
    for case_id in main.in_files(main.cases):
        sample = samples.of(case_id)
        found[case_id] = Row(
            case_id=case_id,
            label=main.label(case_id),
            settings=grid.settings(case_id),
            p50=sample.times.quantile(0.50),
            p50_interval=stats.quantile_interval(sample.times, 0.50),
            p99=sample.times.quantile(0.99),
            p99_interval=stats.quantile_interval(sample.times, 0.99),
            delta=samples.change(case_id, reference, 0.50),
            bytes=sample.size.mean(),
            on_link=sample.on_link,
            delta_bytes=samples.size_change(case_id, reference),
            bytes_up=sample.up,
            bytes_down=sample.down,
            failed=sample.failed,
            deadline=met.get(case_id),
            verdict=verdicts.get(case_id),
            columns={key: one for key, one in main.cases[case_id].items() if one is not None},
            finest=sample.finest,
            on_boards=main.on_boards(case_id),
        )
        if case_id != reference:
            samples.forget_beyond_memory(reference)
    return [found[case_id] for case_id in main.cases]
