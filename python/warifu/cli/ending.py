# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How `warifu run` ends: what was found and checked, what failed and why, and what is next."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warifu.cli import answers, screen
from warifu.cli.answers import Answered
from warifu.cli.formats import Format

if TYPE_CHECKING:
    from warifu.compare.comparison import CaseComparison, Comparison
    from warifu.compare.rows import Row

#: So many failures are told; the report has all.
_TOLD = 2
#: More trials are offered if they are no more than so many times those that were measured: what
#: took three minutes then takes an hour.
_MOST_TIMES = 20


@dataclass(frozen=True)
class Shown:
    """How a verb's output is shown."""

    form: Format
    baseline: str | None = None
    #: The largest differences alone, in one sentence.
    brief: bool = False


@dataclass(frozen=True)
class Ending:
    """What a run did beside finding its answer."""

    page: Path
    #: Why nothing was measured; empty where something was.
    why_not: str
    wanted: bool
    folder: Path
    seconds: float
    #: Whether another machine's profile answered for this one.
    stands_in: bool = False


def show(answered: Answered, options: Shown, ending: Ending) -> None:
    """The answer, and after it these lines; programs get the answer as data."""
    if options.form is not Format.TABLE:
        more = []
        if answered.comparison is not None:
            from warifu.report.accuracy import comparison_table

            more = [answers.with_settings(comparison_table(answered.comparison), answered)]
            more[0].name = "comparison"
        answers.show(answered, options.form, more)
        if ending.why_not:
            screen.warn(_not_measured(ending))
        screen.say(f"report: {ending.page}")
        return
    answers.warn(answered, options.form)
    text = _brief(answered) if options.brief else _opening(answered)
    lines = [("checked", answered.found.badge.text)]
    lines += [("failed", one) for one in failures(answered.comparison)]
    if ending.why_not and ending.wanted:
        lines.append(("not run", _not_measured(ending)))
    lines.append(("report", str(ending.page)))
    if not options.brief:
        lines.append(("results", f"{ending.folder} ({ending.seconds:.0f} s)"))
    lines.append(("next", next_command(answered, ending)))
    from warifu.answer.text import paragraph

    text += "".join(paragraph(what, _width(), f"{name + ':':9}") for name, what in lines)
    sys.stdout.write(screen.coloured(text, sys.stdout))
    sys.stdout.flush()


def _not_measured(ending: Ending) -> str:
    return f"nothing was measured: {ending.why_not}"


def _opening(answered: Answered) -> str:
    from warifu.answer.text import opening

    return opening(answered.found, _width())


def _width() -> int:
    """Columns of a line: those of a terminal that is narrower than others."""
    return min(screen.width(sys.stdout), screen.WIDTH)


def _brief(answered: Answered) -> str:
    from warifu.answer.text import paragraph

    found = answered.found
    asked = found.sentences[: len(found.requirements)]
    every = [*asked, found.headline or "Nothing was varied.", *found.not_included]
    # A question of the command line has no name; what was asked is not repeated.
    lead = "answer: " if found.study == "question" else f"{found.study}: "
    return paragraph(lead + " ".join(every), _width())


def failures(comparison: Comparison | None) -> list[str]:
    """Which figures are outside their gates, in plain words; the worst first."""
    if comparison is None:
        return []
    from warifu.compare.gates import Verdict
    from warifu.report.accuracy import badness

    failed: list[tuple[CaseComparison, Row]] = [
        (case, row) for case in comparison.cases for row in case.rows if row.verdict is Verdict.FAIL
    ]
    failed.sort(key=lambda each: badness(*each), reverse=True)
    told = [
        f"{case.label or 'the only case'}: {_off(row)}, more than its gate of {row.gate}".replace(
            "%", " %"
        ).replace("  %", " %")
        for case, row in failed[:_TOLD]
    ]
    differing = [
        case.label or "the only case"
        for case in comparison.cases
        if case.bytes_gated and any(one.verdict is Verdict.FAIL for one in case.bytes)
    ]
    if differing:
        told.append(f"{differing[0]}: other bytes were sent than predicted")
    if len(failed) > _TOLD:
        told.append(f"and {len(failed) - _TOLD} more figures, which the report lists")
    return told


def _off(row: Row) -> str:
    """How far apart the halves are."""
    if row.unit != "ns":
        return f"{row.statistic}, {row.predicted:.1%} predicted and {row.measured:.1%} measured"
    which = "above" if row.difference > 0 else "below"
    return (
        f"the predicted {_name(row.statistic)} is {abs(row.relative):.1%} {which} the measured one"
    )


def _name(statistic: str) -> str:
    """`p50` as median, `replayed: p95` as replayed P95."""
    words = statistic.replace("replayed: ", "replayed ")
    return re.sub(r"\bp(\d)", r"P\1", re.sub(r"\bp50$", "median", words))


def next_command(answered: Answered, ending: Ending) -> str:
    """What to do now, as a command that can be pasted."""
    from warifu import tools
    from warifu.compare.gates import Verdict
    from warifu.results.repeating import command

    folder = shlex.quote(str(ending.folder))
    comparison = answered.comparison
    if ending.stands_in and ending.wanted:
        again = f"calibrate host{_study_file(answered)}"
        return f"{tools.as_root(again)}, so that this machine can answer and measure"
    if comparison is None and ending.wanted:
        return "warifu doctor, which lists what is missing to measure, each with a fix"
    if comparison is not None and comparison.count(Verdict.FAIL):
        return f"warifu compare {folder} --worst-first"
    if answered.predicted is not None and comparison and _not_decided(comparison):
        if (decides := _decides(comparison)) is not None:
            again = command(answered.predicted.manifest, "run", tools.program())
            return f"{again} --trials {decides[0]}, which would decide{decides[1]}"
        return f"warifu compare {folder} --worst-first, for what is not decided and why"
    return f"warifu report {folder} --format csv, for every figure of every case"


def _study_file(answered: Answered) -> str:
    """The flag that names the study, where it has a file."""
    main = answered.predicted or answered.measured
    file = "" if main is None else str((main.manifest.get("study") or {}).get("file") or "")
    return f" --for {shlex.quote(file)}" if file.endswith(".toml") else ""


def _decides(comparison: Comparison) -> tuple[int, str] | None:
    """Measured connections a case that would decide every gate, of the cases that have others, as
    many as `_MOST_TIMES` as many as were measured can; two digits. None where that is none."""
    undecided = _not_decided(comparison)
    most = _MOST_TIMES * max((int(case.n_measured) for case in undecided), default=0)
    needed = [
        max((row.trials_needed or most + 1 for row in case.rows if _is_open(row)), default=most + 1)
        for case in undecided
    ]
    within = [one for one in needed if one <= most]
    if not within:
        return None
    of = "" if len(within) == len(undecided) else f" {len(within)} of {len(undecided)}"
    scale = 10 ** max(0, len(str(max(within))) - 2)
    return -(-max(within) // scale) * scale, of


def _not_decided(comparison: Comparison) -> list[CaseComparison]:
    """Cases with gates that their trials do not decide."""
    return [
        case for case in comparison.cases if not case.not_judged and any(map(_is_open, case.rows))
    ]


def _is_open(row: Row) -> bool:
    return row.gate is not None and (str(row.verdict) == "undecided" or bool(row.no_statement))
