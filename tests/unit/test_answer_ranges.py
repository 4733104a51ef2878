# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A sentence's number or range covers every combination that it speaks of."""

from __future__ import annotations

import itertools
import math
import random
import re
from dataclasses import replace

import pytest

from warifu.answer import amounts
from warifu.answer.axes import Axis
from warifu.answer.effects import Choice, Effect, effects, hull
from warifu.answer.model import Change
from warifu.answer.sentences import (
    _as_one,
    _by_board,
    _difference,
    _largest,
    _of_choice,
    _of_tail,
    _ranged,
    _Teller,
)
from warifu.compare.stats import Interval

AXES = [Axis("stack.session", ("full", "resumed")), Axis("link.loss", ("0 %", "1 %", "5 %"))]
PLACES = list(itertools.product(*(axis.values for axis in AXES)))
TIME = _Teller(lambda value, half: amounts.time(value, half), "no difference in time")
SIZE = _Teller(amounts.size, "")
_NUMBER = re.compile(r"([+-]?)([\d.]+)(?: (ms|s|kB|B)\b)?")
_UNITS = {"ms": 1e6, "s": 1e9, "B": 1.0, "kB": 1e3}

Context = tuple[str, ...]


def numbers(shown: str) -> list[tuple[float, float]]:
    """The amounts of a text in ns or B, each with what its last digit rounds; a unit is said once
    where two have it."""
    found, unit = [], 1.0
    text = re.sub(r"\(below 1 %\)", "", shown)
    for sign, digits, name in reversed(_NUMBER.findall(text)):
        unit = _UNITS[name] if name else unit
        decimals = len(digits.partition(".")[2])
        # 1250 stands for a number of three digits, and 1000 for one of one.
        last = 10.0**-decimals if decimals else 10.0 ** (len(digits) - len(digits.rstrip("0")))
        value = float(digits) * unit
        found.append((-value if sign == "-" else value, 0.5001 * last * unit))
    return found[::-1]


def check(shown: tuple[str, str], rows: list[tuple[Change, float]]) -> None:
    verb, rest = shown
    if rest.startswith(("no difference", "a difference too small")):
        assert all(
            max(map(abs, change.reach)) < 0.001 * whole for change, whole in rows
        ) or rest.startswith("a difference too small")
        return
    if by_board := re.search(r" by the board\)$", rest):
        said = rest[: by_board.start()]
        own, _, on_boards = said.rpartition(", " if "by the estimates" in said else " (")
        check_boards(verb, on_boards, rows)
        if own == "no certain difference":
            assert not any(change.certain for change, _ in rows)
            return
        rest = own + ")" * ("by the estimates" in said)
    else:
        # What is left out is within a tenth of what is told.
        most = max(abs(change.value) for change, _ in rows)
        for change, _ in rows:
            if change.boards is not None and all(one.certain for one, _ in rows):
                assert max(map(abs, change.boards)) <= 1.2 * most + 2.0 * change.interval.half_width
    ends = numbers(rest)
    if "up to" in rest:
        ends = [(0.0, 0.0), *ends]
    if verb == "save":
        ends = [(-value, last) for value, last in ends]
    low, high = min(one - last for one, last in ends), max(one + last for one, last in ends)
    if rest.startswith("no certain difference"):
        changes = [replace(change, boards=None, together=None) for change, _ in rows]
        assert not any(change.certain for change, _ in rows)
        for change, _ in rows:
            # Of what the trials are sure of, in the middle of the bands, the value is told.
            told = [change.value] if by_board and hull(0.0, changes).certain else change.interval
            assert all(low <= one <= high for one in told), (rest, rows)
        return
    for change, _ in rows:
        if change.certain:
            assert low <= change.value <= high, (verb, rest, rows)
        else:
            assert low <= change.reach.high and change.reach.low <= high, (rest, rows)
    if "below 1 %" in rest:
        assert all(abs(change.value) < 0.01 * whole for change, whole in rows)


def check_boards(verb: str, shown: str, rows: list[tuple[Change, float]]) -> None:
    """The ends that are told hold those of every combination."""
    ends = numbers(shown)
    if "up to" in shown:
        ends = [(0.0, 0.0), *ends]
    if verb == "save" and not re.search(r"[+-]", shown):
        ends = [(-value, last) for value, last in ends]
    low, high = min(one - last for one, last in ends), max(one + last for one, last in ends)
    for change, _ in rows:
        ends = change.boards or Interval(change.value, change.value)
        assert low <= ends.low and ends.high <= high, (verb, shown, rows)


def drawn(seed: int) -> tuple[dict[Context, Change], dict[Context, float]]:
    """Differences that depend on some of the choices, more or less uncertain."""
    rng = random.Random(seed)
    scale = 10.0 ** rng.uniform(0.0, 9.5)
    noise = scale * 10.0 ** rng.uniform(-3.0, 0.5)
    shifts = {
        value: rng.choice([0.0, 0.0, 1.0, -1.0, 0.03]) for axis in AXES for value in axis.values
    }
    changes, wholes = {}, {}
    for place in PLACES:
        value = scale * (1.0 + sum(shifts[one] for one in place)) * rng.choice([1.0, 1.0, -1.0])
        value *= rng.uniform(0.97, 1.03)
        half = noise * rng.uniform(0.5, 2.0)
        boards = together = None
        if seed % 2:
            below, above = (rng.uniform(0.0, scale) * rng.choice([0.0, 0.1, 3.0]) for _ in "12")
            boards = Interval(value - below, value + above)
            together = Interval(value - half - below, value + half + above)
        changes[place] = Change(value, Interval(value - half, value + half), boards, together)
        wholes[place] = scale * 10.0 ** rng.uniform(0.0, 3.0)
    return changes, wholes


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_a_range_covers_its_rows(first: int) -> None:
    for seed in range(first, first + 500):
        changes, wholes = drawn(seed)
        for depth, teller in itertools.product((0, 1, 2), (TIME, SIZE)):
            found = effects(changes, AXES, wholes.__getitem__, depth)
            for effect in found:
                rows = [
                    (changes[place], wholes[place])
                    for place in PLACES
                    if all(place[_at(path)] == value for path, value in effect.where)
                ]
                check(_difference(effect, teller), rows)
            one = _as_one(found)
            if len(one) == 1:
                rows = [(changes[place], wholes[place]) for place in PLACES]
                check(_difference(one[0], teller), rows)


def test_what_is_told_of_many_covers_all_of_them() -> None:
    """The headline, the tail, and the two ends of more differences than a sentence has."""
    axis = Axis("stack.tls", ("1.2", "1.3"))
    for seed in range(600):
        changes, wholes = drawn(seed)
        found = effects(changes, AXES, wholes.__getitem__, 2)
        sure = [change.value for change in changes.values() if change.certain]
        if largest := _largest(axis, "1.3", found, 0.0):
            largest = re.sub(r" \([^)]*by the board\)", "", largest)
            (most, last) = numbers(largest.removeprefix("TLS 1.3 "))[-1]
            same = [value for value in sure if (value < 0) == (" saves " in largest)]
            assert max(map(abs, same)) <= most + last, (largest, same)
            if " up to " not in largest:
                assert min(map(abs, sure)) >= most - last and len(same) == len(changes)
        low, high = (end(change.value for change in changes.values()) for end in (min, max))
        first, second = _ranged(found, TIME).split(" at one end and ")
        for part, value in ((first, low), (second, high)):
            (amount, last) = numbers(part.split(" with ")[0].split(" resumed")[0])[0]
            assert abs(amount - abs(value)) <= last and ("saves" in part) == (value < 0)
            # The range of the end's own effect.
            of_end = [one for one in found if value in (one.least, one.most)]
            shown = [by_board for one in of_end if (by_board := _by_board(one, TIME))]
            assert ("by the board" in part) == bool(shown), (part, shown)
            assert not shown or any(f" ({one})" in part for one in shown)
        choice = Choice(axis, "1.3", "1.2", [], found)
        if tail := _of_tail(choice, TIME):
            for part, saves in ((one, "saves" in one) for one in tail.split(" and elsewhere ")):
                same = [value for value in sure if (value < 0) == saves]
                ends = numbers(part.replace("P99", ""))
                most, last = ends[-1]
                least = 0.0 if "up to" in part else ends[0][0] - ends[0][1]
                assert all(least <= abs(value) <= most + last for value in same), (tail, same)
            told_signs = {"saves" in part for part in tail.split(" and elsewhere ")}
            assert {value < 0 for value in sure} == told_signs


def _at(path: str) -> int:
    return [axis.path for axis in AXES].index(path)


def told(*rows: tuple[float, float], whole: float = 1e9, scale: float = 1e6) -> str:
    """What is said of differences in ms with their half widths, seen as one."""
    changes: dict[Context, Change] = {
        (str(at),): Change(value * scale, Interval((value - half) * scale, (value + half) * scale))
        for at, (value, half) in enumerate(rows)
    }
    (found,) = effects(changes, [], lambda _: whole, 0)
    return " ".join(_difference(found, TIME if scale > 1.0 else SIZE))


def test_words_of_a_difference() -> None:
    assert told((626.0, 3.0), (634.0, 3.0)) == "add 626 to 634 ms"
    assert told((-147.7, 0.5), (-155.6, 0.5)) == "save 148 to 156 ms"
    # Of one only it is below 1 %.
    assert told((7.0, 0.6), (11.0, 0.6)) == "add 7.0 to 11.0 ms"
    assert told((7.0, 0.6), (7.0, 0.6)) == "add 7.0 ms (below 1 %)"
    assert told((3.1, 0.6), (3.12, 0.6)) == "add 3.1 ms (below 1 %)"
    # Some surely save, and some may not.
    assert told((-7.0, 8.0), (-7.2, 6.0)) == "save up to 7 ms (below 1 %)"
    assert told((-7.0, 8.0), (-7.2, 9.0)) == "make no certain difference (-16 ms to +2 ms)"
    assert told((0.1, 0.2), (-0.1, 0.2)) == "make no difference in time"
    assert told((-8.0, 12.0), (700.0, 20.0), scale=1.0, whole=4e3) == "add up to 700 B"
    assert told((-40.0, 2.0), (70.0, 2.0)) == "make a difference of -40.0 ms to +70.0 ms"
    assert told((998.0, 40.0), (1800.0, 40.0), scale=1.0, whole=4e3) == "add 1.0 to 1.8 kB"


def test_words_of_what_depends_on_the_board() -> None:
    def on_boards(value: float, low: float, high: float, whole: float = 1e9) -> str:
        interval = Interval((value - 1.0) * 1e6, (value + 1.0) * 1e6)
        boards = Interval(low * 1e6, high * 1e6)
        change = Change(
            value * 1e6, interval, boards, Interval(boards.low - 1e6, boards.high + 1e6)
        )
        (found,) = effects({("0",): change}, [], lambda _: whole, 0)
        return " ".join(_difference(found, TIME))

    assert on_boards(342.0, 88.0, 2113.0) == "add 342 ms (90 to 2110 ms by the board)"
    assert on_boards(-342.0, -2113.0, -88.0) == "save 342 ms (90 to 2110 ms by the board)"
    assert on_boards(342.0, 335.0, 349.0) == "add 342 ms"
    # The estimates differ, and yet the board may turn it.
    assert on_boards(342.0, -21.0, 913.0) == (
        "make no certain difference (by the estimates +342 ms, -20 ms to +910 ms by the board)"
    )
    # So small a part of the whole that it is none, on any board.
    assert on_boards(0.2, -1.5, 1.9, whole=1e10) == "make no difference in time"


def test_the_largest_is_up_to_where_others_are_smaller() -> None:
    axis = Axis("pattern.concurrent", ("1", "8"))
    rows = {
        (str(at),): Change(value, Interval(value - 1e6, value + 1e6))
        for at, value in enumerate((626e6, 634e6))
    }
    found = effects(rows, [], lambda _: 1e9, 0)
    assert _largest(axis, "8", found, 0.0) == "8 connections at once add up to 634 ms"


def test_several_things_have_verbs_of_their_own() -> None:
    axis = Axis("pattern.concurrent", ("1", "8"))
    change = Change(60e6, Interval(59e6, 61e6))
    choice = Choice(axis, "8", "1", [Effect((), change, 60e6, 60e6, 1e9)])
    assert _of_choice(choice, 0.0, first=True) == "8 connections at once add 60.0 ms"
    assert math.isclose(change.value, 60e6)
