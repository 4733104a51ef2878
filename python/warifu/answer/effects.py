# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What each choice changes, and with which of the other choices it changes how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warifu.answer.axes import Axis, Grid
from warifu.answer.model import Change
from warifu.compare.stats import Interval

#: Differences that vary by less than this share of the largest of them are told as one.
ALIKE = 0.3
#: And by less than this share of what a connection takes in all.
_ALIKE_OF_WHOLE = 0.004
#: So many combinations of the other choices are looked at for an effect, spread over all.
_MOST_CONTEXTS = 48
#: How many of the other choices an effect may be told apart by.
_DEPTH = 2

Context = tuple[str, ...]


@dataclass(frozen=True)
class Effect:
    """A difference in one or more combinations of the other choices that are alike."""

    #: Path and value of the other choices that it holds for; empty for all.
    where: tuple[tuple[str, str], ...]
    #: The median of the combinations' differences, and the hull of their intervals.
    change: Change
    #: The least and the largest of these differences.
    least: float
    most: float
    #: What a connection takes there without it.
    whole: float
    #: The difference in each combination, with what a connection takes there without it.
    each: tuple[tuple[Change, float], ...] = ()

    @property
    def certain(self) -> bool:
        """Whether it is not 0 in any of these combinations, on the same side of it."""
        return self.change.certain

    @property
    def saves(self) -> bool:
        """Whether it surely saves in any of these combinations."""
        return any(change.reach.high < 0.0 for change, _ in self._every)

    @property
    def adds(self) -> bool:
        """Whether it surely adds in any of these combinations."""
        return any(change.reach.low > 0.0 for change, _ in self._every)

    @property
    def half(self) -> float:
        """The widest uncertainty of any of these combinations, which says how many digits count."""
        widths = [change.interval.half_width for change, _ in self._every]
        return max((one for one in widths if math.isfinite(one)), default=0.0)

    def below(self, share: float, surely: bool = False) -> bool:
        """Whether the difference is below this share of the whole in all of these combinations;
        ``surely`` with all of its interval."""
        return all(
            max(map(abs, change.reach) if surely else [abs(change.value)]) < share * abs(whole)
            for change, whole in self._every
        )

    @property
    def _every(self) -> tuple[tuple[Change, float], ...]:
        return self.each or ((self.change, self.whole),)


@dataclass(frozen=True)
class Choice:
    """One value of an axis against the reference, as effects that differ."""

    axis: Axis
    value: str
    reference: str
    time: list[Effect] = field(default_factory=list)
    tail: list[Effect] = field(default_factory=list)
    size: list[Effect] = field(default_factory=list)
    #: Whether sizes are of packets on the link, not of what programs wrote.
    on_link: bool = True


def contexts(grid: Grid, at: int, values: Sequence[str]) -> list[Context]:
    """Combinations of the other choices of which there is a case for each of ``values``; a spread
    of them where there are many."""
    found: dict[Context, None] = {}
    for choices in grid.cases:
        other = choices[:at] + choices[at + 1 :]
        if other not in found and all(_with(other, at, one) in grid.cases for one in values):
            found[other] = None
    every = list(found)
    if len(every) <= _MOST_CONTEXTS:
        return every
    step = (len(every) - 1) / (_MOST_CONTEXTS - 1)
    return [every[round(index * step)] for index in range(_MOST_CONTEXTS)]


def case_of(grid: Grid, at: int, context: Context, value: str) -> str:
    """The case with ``value`` on axis ``at`` and ``context`` on the others."""
    return grid.cases[_with(context, at, value)]


def effects(
    changes: dict[Context, Change],
    others: Sequence[Axis],
    whole: Callable[[Context], float],
    depth: int = _DEPTH,
    alike: float = ALIKE,
) -> list[Effect]:
    """The differences told apart by those other choices that they depend on.

    A regression tree with a branch for each value: it splits by the choice after which most is
    alike, and of equal ones by that which leaves least spread, at most ``depth`` times.
    """
    known = {one: change for one, change in changes.items() if math.isfinite(change.value)}
    if not known:
        return []
    return _grown(known, others, whole, (), (depth, alike))


def _grown(
    changes: dict[Context, Change],
    others: Sequence[Axis],
    whole: Callable[[Context], float],
    where: tuple[tuple[str, str], ...],
    limits: tuple[int, float],
) -> list[Effect]:
    depth, alike = limits
    if not depth or _alike(changes, whole, alike):
        return [_effect(changes, whole, where)]
    best: list[tuple[str, dict[Context, Change]]] = []
    chosen, rank = None, (0.0, -_spread(changes) * 0.999)
    for at, axis in enumerate(others):
        groups = [
            (value, {one: change for one, change in changes.items() if one[at] == value})
            for value in axis.values
        ]
        groups = [(value, group) for value, group in groups if group]
        if len(groups) < 2:
            continue
        settled = sum(len(group) for _, group in groups if _alike(group, whole, alike)) / len(
            changes
        )
        mean = sum(_spread(group) * len(group) for _, group in groups) / len(changes)
        if (settled, -mean) > rank:
            rank, chosen, best = (settled, -mean), axis, groups
    if chosen is None:
        return [_effect(changes, whole, where)]
    return [
        effect
        for value, group in best
        for effect in _grown(
            group, others, whole, (*where, (chosen.path, value)), (depth - 1, alike)
        )
    ]


def _alike(changes: dict[Context, Change], whole: Callable[[Context], float], share: float) -> bool:
    values = [change.value for change in changes.values()]
    widths = [change.interval.half_width for change in changes.values()]
    noise = max((one for one in widths if math.isfinite(one)), default=0.0)
    least = min((one for one in map(whole, changes) if math.isfinite(one)), default=0.0)
    if min(values) < 0.0 < max(values) and any(one.certain for one in changes.values()):
        # One that saves here and costs there is two things, unless both are next to nothing.
        return max(values) - min(values) <= max(_ALIKE_OF_WHOLE * least, 2.0 * noise)
    allowed = max(share * max(map(abs, values)), 2.0 * noise, _ALIKE_OF_WHOLE * least)
    return _spread(changes) <= allowed


def _spread(changes: dict[Context, Change]) -> float:
    values = [change.value for change in changes.values()]
    return max(values) - min(values)


def _effect(
    changes: dict[Context, Change],
    whole: Callable[[Context], float],
    where: tuple[tuple[str, str], ...],
) -> Effect:
    ordered = sorted(changes.values(), key=lambda change: change.value)
    wholes = sorted(map(whole, changes))
    return Effect(
        where,
        hull(ordered[len(ordered) // 2].value, ordered),
        ordered[0].value,
        ordered[-1].value,
        wholes[len(wholes) // 2],
        tuple((change, whole(one)) for one, change in changes.items()),
    )


def hull(value: float, changes: Sequence[Change]) -> Change:
    """Several differences as one of this value."""
    interval = _hull([change.interval for change in changes])
    if all(change.boards is None for change in changes):
        return Change(value, interval)
    # What does not depend on the board is the same on all of them.
    values = [Interval(change.value, change.value) for change in changes]
    boards = [
        alone if change.boards is None else change.boards
        for alone, change in zip(values, changes, strict=True)
    ]
    return Change(value, interval, _hull(boards), _hull([change.reach for change in changes]))


def _hull(intervals: Sequence[Interval]) -> Interval:
    return Interval(min(one.low for one in intervals), max(one.high for one in intervals))


def _with(context: Context, at: int, value: str) -> Context:
    return (*context[:at], value, *context[at:])
