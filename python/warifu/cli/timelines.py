# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One predicted connection as text, from what `warifu predict` stored."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from warifu import tools
from warifu.cli import halves, screen
from warifu.printable import printable

if TYPE_CHECKING:
    from warifu.study import Loaded

#: Where the names of a line's messages begin, after its time, its end and an arrow.
_NAMES_AT = 26


def text(loaded: Loaded, index: int, quantile: float) -> str:
    """The timeline of a case at a quantile, a line for each thing that happens, which goes on
    below where the terminal is narrower.

    Raises ResultsError where there is none, with what makes it.
    """
    from warifu.report.timeline_labels import description, lines
    from warifu.results import ResultsError, read_manifest, read_timelines

    folder = halves.folder_of(loaded, None) / "predicted"
    again = f"run `{tools.program()} predict` of this study"
    if not (folder / "manifest.json").is_file():
        raise ResultsError(f"{folder}: holds no prediction: {again} first")
    case = loaded.study.cases[index]
    found = read_timelines(folder, read_manifest(folder))
    of_case = found.of(case.id) if found is not None else []
    if not of_case:
        raise ResultsError(f"{folder}: has no timeline of case {case.label or case.id}: {again}")
    wanted = [one for one in of_case if one.quantile == quantile]
    if not wanted:
        have = " or ".join(f"{one.quantile:g}" for one in of_case)
        raise ResultsError(f"--quantile {quantile:g}: this case has {have}")
    head = description(wanted[0], f"{case.label or 'the only case'}, P{quantile * 100:g}")
    head = screen.fitted(printable(head), sys.stdout)
    below = "\n".join([*lines(wanted[0]), ""])
    return f"{head}\n\n{screen.fitted(below, sys.stdout, _NAMES_AT)}"
