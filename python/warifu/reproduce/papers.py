# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a paper says, claim by claim, and what comes of each here.

A paper's TOML holds its figures under `[published]` and a `[[claim]]` for each table, figure and
sentence that says something. A claim is *judged* by a function of the paper's module, or is said to
be *predicted only* or *not testable*, with the reason. What comes of a judged claim is recorded as
well (`expect`), so that a run can fail: by another verdict, or because it could not be made.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from typing import Any

from warifu.report.table import Column, Table


class Word(StrEnum):
    """What comes of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    PREDICTED = "predicted only"
    UNTESTABLE = "not testable"
    NOT_RUN = "not run here"


@dataclass(frozen=True)
class Outcome:
    """What was found of a claim; `holds` is None where it is not judged."""

    holds: bool | None
    here: str = ""
    """Measured, or calculated from the paper's own figures."""
    predicted: str = ""
    why: str = ""


@dataclass(frozen=True)
class Missing:
    """What a claim needs and this machine has not given, with the fix."""

    why: str


@dataclass(frozen=True)
class Claim:
    """A table, a figure or a sentence of a paper."""

    id: str
    where: str
    says: str
    published: str = ""
    """The figure, with its unit."""
    figures: tuple[str, ...] = ()
    """The keys of `[published]` that it stands for."""
    covers: tuple[str, ...] = ()
    """Tables and figures of the paper, such as `Table 3`."""
    judged: bool = False
    expect: Word | None = None
    """The verdict that is recorded; None where it rests on times, which are the machine's."""
    why: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper's figures and claims."""

    source: str
    platform: str
    published: Mapping[str, Any]
    claims: tuple[Claim, ...]
    tables: tuple[str, ...]
    """All tables and figures that it has, by name."""

    @property
    def figures(self) -> list[str]:
        """The keys of all published figures."""
        return list(_leaves(self.published))

    def problems(self, judges: Mapping[str, object]) -> list[str]:
        """What is left out: a table, a figure, a number, a reason, or a function that judges."""
        covered = {name for claim in self.claims for name in claim.covers}
        used = {name for claim in self.claims for name in claim.figures}
        ids = Counter(claim.id for claim in self.claims)
        found = [f"{one}: is in no claim" for one in self.tables if one not in covered]
        found += [f"{one}: is not of this paper" for one in covered if one not in self.tables]
        found += [f"published.{one}: is in no claim" for one in self.figures if one not in used]
        found += [f"published.{one}: is unknown" for one in used if one not in self.figures]
        found += [f"claim {one}: is there {count} times" for one, count in ids.items() if count > 1]
        for claim in self.claims:
            if claim.judged and claim.id not in judges:
                found.append(f"claim {claim.id}: nothing judges it")
            if not claim.judged and claim.expect not in (Word.PREDICTED, Word.UNTESTABLE):
                found.append(f"claim {claim.id}: neither judged nor said to be not testable")
            if not claim.judged and not claim.why:
                found.append(f"claim {claim.id}: gives no reason")
            if claim.judged and claim.expect in (Word.PREDICTED, Word.UNTESTABLE):
                found.append(f"claim {claim.id}: is judged, and said to be {claim.expect}")
        found += [f"judge {one}: has no claim" for one in judges if one not in ids]
        return found


def load(name: str) -> Paper:
    """A paper of this package, by its TOML's name."""
    return parse(files("warifu.reproduce").joinpath(f"{name}.toml").read_text())


def parse(text: str) -> Paper:
    """A paper's TOML."""
    content = tomllib.loads(text)
    return Paper(
        content["source"],
        content["platform"],
        content["published"],
        tuple(_claim(one) for one in content["claim"]),
        tuple(content["tables"]),
    )


def _claim(words: Mapping[str, Any]) -> Claim:
    # An unknown key is a mistake of ours, which the constructor names.
    lists = {key: tuple(words[key]) for key in ("figures", "covers") if key in words}
    expect = {"expect": Word(words["expect"])} if "expect" in words else {}
    return Claim(**{**words, **lists, **expect})


def _leaves(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


@dataclass
class Verdicts:
    """What has come of each claim of a paper."""

    paper: Paper
    rows: list[tuple[Claim, Word, Outcome]] = field(default_factory=list)

    @property
    def unexpected(self) -> list[str]:
        """Claims that came out otherwise than recorded."""
        return [
            claim.id
            for claim, word, _ in self.rows
            if claim.expect not in (None, word) and word is not Word.NOT_RUN
        ]

    @property
    def not_run(self) -> list[str]:
        """Claims that could not be judged on this machine."""
        return [claim.id for claim, word, _ in self.rows if word is Word.NOT_RUN]

    @property
    def holds(self) -> bool:
        """Whether everything that can be judged here was, and came out as recorded."""
        return not self.unexpected and not self.not_run

    @property
    def headline(self) -> str:
        """The answer, in a sentence or two."""
        words = Counter(word for _, word, _ in self.rows)
        said = ", ".join(f"{words[word]} {word}" for word in Word if words[word])
        if self.holds:
            return f"{len(self.rows)} claims: {said}; all that were judged came out as recorded."
        if not self.unexpected:
            return f"INCOMPLETE: {len(self.rows)} claims: {said}; no other verdict than recorded."
        other = ", ".join(self.unexpected)
        return f"FAILS: {len(self.rows)} claims: {said}; otherwise than recorded: {other}."


Judge = Callable[[], Outcome | Missing]


def judge(paper: Paper, judges: Mapping[str, Judge]) -> Verdicts:
    """The verdict of each claim."""
    found = Verdicts(paper)
    for claim in paper.claims:
        outcome = judges[claim.id]() if claim.id in judges else Outcome(None)
        if not claim.judged:
            # Figures may stand beside it, where there are some.
            outcome = Outcome(None) if isinstance(outcome, Missing) else outcome
            found.rows.append((claim, claim.expect or Word.UNTESTABLE, outcome))
        elif isinstance(outcome, Missing):
            found.rows.append((claim, Word.NOT_RUN, Outcome(None, why=outcome.why)))
        else:
            word = Word.REPRODUCED if outcome.holds else Word.NOT_REPRODUCED
            found.rows.append((claim, word, outcome))
    return found


def verdict_table(title: str, verdicts: Verdicts, notes: Sequence[str] = ()) -> Table:
    """The answer first: its title is the verdict, its rows are the claims."""
    widths = {"where": 11, "claim": 30, "published": 16, "here": 26, "predicted": 20, "verdict": 36}
    columns = [Column(head, number=False, wrap=width) for head, width in widths.items()]
    table = Table(f"{title}: {verdicts.headline}", columns)
    for claim, word, outcome in verdicts.rows:
        why = "; ".join(filter(None, (outcome.why, claim.why)))
        said = f"{word}: {why}" if why else str(word)
        if claim.id in verdicts.unexpected:
            said = f"{said} (recorded: {claim.expect})"
        table.add(
            [claim.where, claim.says, claim.published, outcome.here, outcome.predicted, said],
            {
                "id": claim.id,
                "where": claim.where,
                "claim": claim.says,
                "published": claim.published,
                "here": outcome.here,
                "predicted": outcome.predicted,
                "verdict": str(word),
                "why": why,
                "recorded": None if claim.expect is None else str(claim.expect),
            },
        )
    table.notes += [
        f"The paper: {verdicts.paper.source}. Its machine: {verdicts.paper.platform}.",
        *notes,
    ]
    return table
