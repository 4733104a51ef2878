# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a page is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warifu.compare.comparison import Comparison
from warifu.compare.require import Judged
from warifu.report import accuracy
from warifu.results import Results, Timelines, weakest

#: A page shows this many cases as pictures; more cannot be told apart by eye.
PICTURES = 24


@dataclass(frozen=True)
class Content:
    """What a page is made from: at least one half."""

    predicted: Results | None
    measured: Results | None
    comparison: Comparison | None
    judged: Sequence[Judged]
    #: Whether there is a measurement that was not compared with this prediction.
    left_out: bool = False
    #: How Warifu is called on this machine.
    program: str = "warifu"
    #: Single connections of the prediction, where it has any.
    timelines: Timelines | None = None

    @property
    def halves(self) -> list[Results]:
        """The halves that there are, the prediction first."""
        return [half for half in (self.predicted, self.measured) if half is not None]

    @property
    def main(self) -> Results:
        """The half that the page is about: the prediction, or the measurement where there is none
        yet."""
        return self.halves[0]

    @property
    def evidence(self) -> str:
        """The weakest evidence that any figure here rests on."""
        return weakest([str(one) for one in self.main.manifest.get("evidence") or []])

    def shown_cases(self) -> list[str]:
        """The cases worth a picture: all, or the worst, or a spread from fast to slow."""
        cases = list(self.main.cases)
        if len(cases) <= PICTURES:
            return cases
        if self.comparison is not None:
            ranked = sorted(
                self.comparison.cases,
                key=lambda case: max(accuracy.badness(case, row) for row in case.rows),
                reverse=True,
            )
            return [case.case_id for case in ranked[:PICTURES]]
        step = (len(cases) - 1) / (PICTURES - 1)
        # In the order of the study, whose first and last cases are its corners.
        return [cases[round(index * step)] for index in range(PICTURES)]
