# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What an answer is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from warifu.compare import boards
from warifu.compare.stats import Interval

if TYPE_CHECKING:
    from warifu.report.table import Table
    from warifu.results import OnBoards, Setting

#: What a requirement's verdict is called where it is about a case.
MET, MISSED, UNDECIDED = "met", "missed", "undecided"


class Level(StrEnum):
    """What the validation says; `none` where nothing was measured, or nothing judged."""

    PASS = "pass"
    UNDECIDED = "undecided"
    FAIL = "fail"
    NONE = "none"


@dataclass(frozen=True)
class Badge:
    """How far the figures are to be believed, in one line."""

    text: str
    level: Level


@dataclass(frozen=True)
class Change:
    """A difference with its 95 % interval: ns of times, B of bytes."""

    value: float
    interval: Interval
    #: Where assumed figures have bands: what it is on 95 % of the boards that these allow.
    boards: Interval | None = None
    #: The same with what the trials leave open; None where every board is the same.
    together: Interval | None = None

    @property
    def reach(self) -> Interval:
        """All that it may be."""
        return self.interval if self.together is None else self.together

    @property
    def certain(self) -> bool:
        """Whether all that it may be lies on one side of 0."""
        return self.reach.low > 0.0 or self.reach.high < 0.0


@dataclass(frozen=True)
class Row:
    """A case beside the baseline. Times in ns, sizes in B; a difference is to the baseline."""

    case_id: str
    label: str
    #: The choices that set it apart: dotted path and value as the study has them.
    settings: dict[str, str]
    p50: float
    p50_interval: Interval
    p99: float
    p99_interval: Interval
    delta: Change
    #: Bytes of IP packets on the link in both directions, where the results have them; else what
    #: the programs wrote (`on_link`). The mean of the connections that got their response.
    bytes: float
    on_link: bool
    delta_bytes: Change
    #: Bytes that the device's program wrote, and that it read.
    bytes_up: float
    bytes_down: float
    #: The share of connections that got no response, 0 to 1.
    failed: float
    #: `met`, `missed` or `undecided`: the worst of the study's requirements on this case.
    deadline: str | None
    #: The verdict of the gates, where the case was measured as well.
    verdict: str | None = None
    #: Every setting of the case by its column in results.
    columns: dict[str, Setting] = field(default_factory=dict)
    #: A time is known no finer than this, ns; 0 where nothing limits it.
    finest: float = 0.0
    #: Its time on each board that assumed figures allow; None where every board is the same.
    on_boards: OnBoards | None = field(default=None, repr=False)

    @property
    def boards(self) -> Interval | None:
        """P50 on 95 % of the boards."""
        if self.on_boards is None:
            return None
        return boards.median_range(self.on_boards, self.p50)

    @property
    def certain(self) -> bool:
        """Whether its time surely differs from the baseline's."""
        return self.delta.certain


@dataclass(frozen=True)
class Answer:
    """What a study asked, answered."""

    #: The study's name.
    study: str
    #: `predicted` or `measured`: the half that the figures are of.
    half: str
    #: Device, server, key store, link and stack, with what is so by default.
    question: str
    #: One for the requirements, one for each choice that was varied.
    sentences: list[str]
    #: The largest difference that each option makes, or how long an only case takes.
    headline: str
    #: What the figures leave out, such as waking the radio.
    not_included: list[str]
    badge: Badge
    #: The case that the others are held against.
    baseline: str
    rows: list[Row]
    #: The texts of the study's requirements.
    requirements: list[str] = field(default_factory=list)
    #: What a reader must know before all else: results cut short, a profile that stands in.
    warnings: list[str] = field(default_factory=list)
    #: Of the warnings the one of a machine that stands in, which the question names in brief.
    stands_in: str = ""

    @property
    def baseline_label(self) -> str:
        """The baseline's label; empty for an only case."""
        return next((row.label for row in self.rows if row.case_id == self.baseline), "")

    def text(self, width: int = 80, rows: int = 24) -> str:
        """The answer for people: question, sentences, the table of at most ``rows``, the badge."""
        from warifu.answer.text import as_text

        return as_text(self, width, rows)

    def table(self, limit: int | None = None) -> Table:
        """Every case beside the baseline, or ``limit`` of them; fits 80 columns as text."""
        from warifu.answer.tables import cases_table

        return cases_table(self, limit)
