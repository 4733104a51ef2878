# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The time that a measurement still takes falls, unless something happened that makes it longer."""

from __future__ import annotations

import random

import pytest

from warifu.cli import halves
from warifu.lab.measure import Progress
from warifu.lab.pace import Pace


def test_as_planned() -> None:
    pace = Pace(100.0)
    assert pace.left(400.0, 100.0) == 400.0
    pace.accepted(40.0)
    assert pace.left(360.0, 140.0) == pytest.approx(360.0)


def test_slower_than_planned_does_not_count_up() -> None:
    """Each part takes half as long again: the end that was foreseen stays until it has passed."""
    pace, now, plan = Pace(0.0), 0.0, 400.0
    ends = [pace.left(plan, now) + now]
    while plan > 0:
        now, plan = now + 60.0, plan - 40.0
        pace.accepted(40.0)
        ends.append(pace.left(plan, now) + now)
        assert ends[-1] <= ends[-2] or now >= ends[-2]
    assert ends[0] == 400.0
    assert ends[-1] == now == 600.0


def test_quicker_than_planned_comes_nearer() -> None:
    pace = Pace(0.0)
    before = pace.left(400.0, 0.0)
    pace.accepted(200.0)
    assert pace.left(200.0, 100.0) < before - 200.0


def test_a_rejected_part_makes_it_longer_at_once() -> None:
    pace = Pace(0.0)
    assert pace.left(400.0, 0.0) == 400.0
    pace.reject()
    after = pace.left(400.0, 40.0)
    assert (after, pace.rejected) == (pytest.approx(400.0 * 100 / 60), 1)
    # And then falls again, though another part takes as long as the first.
    pace.accepted(40.0)
    assert pace.left(360.0, 80.0) <= after - 40.0


def test_it_rises_at_rejections_and_past_its_end_alone() -> None:
    chance = random.Random(7)
    for _ in range(200):
        pace, now, parts = Pace(0.0), 0.0, [40.0] * 30
        end = pace.left(sum(parts), now)
        while parts:
            now += chance.uniform(35.0, 60.0)
            rejected = chance.random() < 0.2
            if rejected:
                pace.reject()
            else:
                pace.accepted(parts.pop())
            foreseen = now + pace.left(sum(parts), now)
            assert rejected or now >= end or foreseen <= end + 1e-9
            end = foreseen
        assert end == now


def test_the_line_says_why_the_time_left_rose() -> None:
    """Whatever is rejected and however slow parts are, no rise is shown without what happened since
    the line before that explains it."""
    chance = random.Random(11)
    said = set()
    for _ in range(200):
        pace, now, parts = Pace(0.0), 0.0, [40.0] * 30
        slow, refused = chance.choice([1.0, 1.6]), chance.choice([0.0, 0.2])
        end, rejected = pace.left(sum(parts), now), 0
        while parts:
            now += slow * chance.uniform(35.0, 45.0)
            if chance.random() < refused:
                pace.reject()
            else:
                pace.accepted(parts.pop())
            left = pace.left(sum(parts), now)
            told = Progress(0, 1, 0, 1, "", "", left, pace.rejected, pace.overdue)
            # What happened since, and nothing that a line before has told already.
            why = {
                f"{told.rejected} attempt{'s' * (told.rejected > 1)} rejected": (
                    told.rejected > rejected
                ),
                "parts take longer than planned": now >= end,
            }
            if now + left > end + 1e-9 and parts:
                reasons = {words for words, holds in why.items() if holds}
                assert reasons, f"{end - now:.0f} s became {left:.0f} s without a reason"
                assert reasons <= set(halves._detail(told).split("; "))
                said.add(frozenset(words.lstrip("0123456789 ") for words in reasons))
            end, rejected = now + left, told.rejected
    slower = "parts take longer than planned"
    assert said >= {frozenset({slower}), frozenset({"attempts rejected"})}
